"""What the world is known to be after an action was done, before anybody looks again."""

from msgspec.structs import replace

from anabranch_operator.api.anabranch_names import (
    DeadlineExceeded,
    Description,
    ForkMoved,
    Promoted,
    Refused,
    Squashed,
    Unavailable,
    UnknownBroker,
    UnknownLog,
)
from anabranch_operator.plan.certificates.facts import Holdings, merged
from anabranch_operator.plan.engine.actions import (
    Action,
    Announce,
    Confirm,
    CountOwn,
    DeleteRoot,
    DrainBroker,
    ForgetBroker,
    JoinShard,
    LeaveShard,
    LogAction,
    MakeFork,
    Mark,
    NamedLogAction,
    Promote,
    Squash,
    TailLog,
    Trim,
    TrimOlder,
)
from anabranch_operator.plan.engine.events import Outcome, Text
from anabranch_operator.plan.engine.world import Counted, World
from anabranch_operator.plan.groups.report import Standing
from anabranch_operator.plan.groups.status_polls import moved

AWAY_CODES = (Unavailable.code, DeadlineExceeded.code)
"""The log service didn't answer, and may have done it or may do it yet."""
_BACK = (Standing.LEFT, Standing.LEAVING)
_GONE = (Promoted.code, Squashed.code, UnknownLog.code)


def is_fact(action: Action, refused: Refused) -> bool:
    """Does the refusal say what became of what was asked about? Then it is no trouble."""
    if isinstance(action, DrainBroker | ForgetBroker):
        return refused.code == UnknownBroker.code
    if isinstance(action, Promote) and refused.code == ForkMoved.code:
        return _own_records(refused) > (action.expect_own or 0)
    if refused.code not in _GONE:
        return False
    if isinstance(action, MakeFork):
        # Else it is the parent that is no more, which is told by the parent's own plan.
        return refused.facts.get("owner") == action.owner
    return isinstance(action, LogAction | NamedLogAction)


def learn(world: World, action: Action, outcome: Outcome) -> None:
    service = world.service
    match action, outcome:
        case JoinShard(), None:
            moved(world, action.log, action.shard, _BACK, Standing.WAITING)
        case LeaveShard(), _:
            stayed = (Standing.WAITING, Standing.SEATED)
            moved(world, action.log, action.shard, stayed, Standing.LEAVING)
        case Confirm(uid=uid), None:
            world.confirm_gone(uid)
        case CountOwn(), Description():
            service.learn(outcome)
            counted = Counted(action.job, action.ended, outcome.own_records)
            world.counted[action.fork] = counted
        case _, Description():
            service.learn(outcome)
        case _, Holdings():
            known = world.certificates
            world.certificates = merged(known, outcome) if known else outcome
        case TailLog(), Text():
            world.texts[action.ref] = outcome.text
        case MakeFork(), Refused():
            service.bury(action.owner, outcome)
        case ((DrainBroker() | ForgetBroker()), Refused()):
            service.unseat(action.broker, action.epoch, known=False)
        case Promote(), Refused(code=ForkMoved.code):
            known = service.logs.get(action.log)
            if known is not None:
                service.learn(replace(known, own_records=_own_records(outcome)))
        case ((LogAction() | NamedLogAction()), Refused()):
            service.bury(action.log, outcome)
        case Promote(), _:
            service.bury(action.log, Refused(Promoted.code, "it was promoted", {}))
        case Squash() | DeleteRoot(), _:
            service.bury(action.log, Refused(Squashed.code, "it was squashed", {}))
        case TrimOlder(), _:
            world.trimmed[action.log] = action.before
        case DrainBroker(), _:
            service.unseat(action.broker, action.epoch, known=True)
        case ForgetBroker(), _:
            service.unseat(action.broker, action.epoch, known=False)
        case ((Announce() | Mark() | Trim()), _):
            pass  # nothing that plans look at
        case _:
            raise AssertionError(f"{type(action).__name__} had the outcome {outcome!r}")


def _own_records(moved: Refused) -> int:
    """How many records of its own a fork has that wasn't promoted because it had moved."""
    found = moved.facts.get("found")
    return found if isinstance(found, int) else 0
