"""What stands in the way of what was asked of a log or fork."""

from anabranch.core.errors.base import Damage, Mistake, Refresh, Retry


class ReadBlocked(Retry):
    """A promotable fork has made the parent's positions past its fork point provisional
    (AgileLog, 4.1).
    """

    code = "read-blocked"
    status = 409
    says = (
        "{log} can't be read at {position} while promotable fork {fork} is undecided: promote or "
        "squash it, read before its fork point, or subscribe to get these records as speculative"
    )

    def __init__(self, log: str, position: int, fork: str) -> None:
        super().__init__(log=log, position=position, fork=fork)


class AppendBlocked(Retry):
    """A non-promotable fork takes no appends while a promotable sibling is undecided (AgileLog,
    4.1).
    """

    code = "append-blocked"
    status = 409
    says = (
        "{log} takes no appends while promotable fork {fork} of an ancestor is undecided, and "
        "nothing was appended: promote or squash {fork}, or append to a promotable fork"
    )

    def __init__(self, log: str, fork: str) -> None:
        super().__init__(log=log, fork=fork)


class ForkBlocked(Retry):
    """A fork here would expose positions that an undecided promotable fork may still move (spec
    D3).
    """

    code = "fork-blocked"
    status = 409
    says = (
        "{log} can't be forked so while promotable fork {fork} is undecided: fork it severed "
        "below position {settled}, fork its parent promotable, or promote or squash {fork} first"
    )

    def __init__(self, log: str, fork: str, settled: int) -> None:
        super().__init__(log=log, fork=fork, settled=settled)


class ReceiptPending(Retry):
    """The position of an append is withheld until the promotable forks of its log are decided."""

    code = "receipt-pending"
    status = 409
    says = (
        "the position on {log} is withheld while promotable fork {fork} is undecided: ask again "
        "after it is promoted or squashed"
    )

    def __init__(self, log: str, fork: str) -> None:
        super().__init__(log=log, fork=fork)


class Promoted(Refresh):
    """The fork has become its parent; its positions are now the parent's (AgileLog, 4.1)."""

    code = "promoted"
    status = 410
    says = "{log} was promoted: its records are now {into}'s, at the same positions; use {into}"

    def __init__(self, log: str, into: str) -> None:
        super().__init__(log=log, into=into)


class Squashed(Refresh):
    """The fork was deleted, by somebody, by its time to live, or by a sibling's promotion."""

    code = "squashed"
    status = 410
    says = (
        "{log} was squashed ({reason}) and its own records are gone; the history it shared is in "
        "{parent}"
    )

    def __init__(self, log: str, reason: str, parent: str) -> None:
        super().__init__(log=log, reason=reason, parent=parent)


class ForkMoved(Refresh):
    """A promotion with a condition: what the fork has of its own isn't what was judged."""

    code = "fork-moved"
    status = 409
    says = (
        "{log} has {found} records of its own where {expected} were expected, so it wasn't "
        "promoted: judge it as it is now and promote it with that count, or squash it"
    )

    def __init__(self, log: str, expected: int, found: int) -> None:
        super().__init__(log=log, expected=expected, found=found)


class SequenceGap(Refresh):
    """A producer's batch arrived before the ones it sent earlier, or the log has forgotten the
    producer.
    """

    code = "sequence-gap"
    status = 409
    says = (
        "producer {producer} sent sequence {got} to {log}, which expects {expected}: send the "
        "missing batches first, or start anew with another producer id"
    )

    def __init__(self, log: str, producer: int, expected: int, got: int) -> None:
        super().__init__(log=log, producer=producer, expected=expected, got=got)


class PlanEnded(Refresh):
    """Objects that the plan names are no longer kept for its scan."""

    code = "plan-ended"
    status = 410
    says = (
        "scan plan {plan} of {log} has ended ({reason}): what it names may be deleted; plan the "
        "rest of the scan anew"
    )

    def __init__(self, plan: str, log: str, reason: str) -> None:
        super().__init__(plan=plan, log=log, reason=reason)


class PlanOutdated(Refresh):
    """The log isn't as it was when the scan was planned. What pages named so far stays there."""

    code = "plan-outdated"
    status = 409
    says = (
        "scan plan {plan} of {log} has no page from {position} on: {reason}; plan the rest of the "
        "scan anew"
    )

    def __init__(self, plan: str, log: str, position: int, reason: str) -> None:
        super().__init__(plan=plan, log=log, position=position, reason=reason)


class CompactorEnded(Refresh):
    """Whatever a compactor has written and nobody has adopted will be deleted."""

    code = "compactor-ended"
    status = 410
    says = (
        "compactor {compactor} has ended ({reason}): what it wrote and wasn't adopted is deleted; "
        "register a new one and take copies anew"
    )

    def __init__(self, compactor: int, reason: str) -> None:
        super().__init__(compactor=compactor, reason=reason)


class NotSealed(Mistake):
    """Bytes were asked for that no page of the plan has named."""

    code = "not-sealed"
    status = 403
    says = (
        "no page of scan plan {plan} of {log} names bytes {offset}..{end} of object {object}: send "
        "slices as a page gave them, with their seals"
    )

    def __init__(self, plan: str, log: str, object: str, offset: int, end: int) -> None:
        super().__init__(plan=plan, log=log, object=object, offset=offset, end=end)


class ReceiptExpired(Refresh):
    code = "receipt-expired"
    status = 410
    says = (
        "this receipt of {log} is older than the promotions that are remembered: the record is in"
        " the log, find it by reading"
    )

    def __init__(self, log: str) -> None:
        super().__init__(log=log)


class PositionForgotten(ReceiptExpired):
    """The sequencers of a lazy front knew the position, and are gone."""

    code = "position-forgotten"
    status = 410
    says = (
        "nobody had asked for the position of this append when the appends of {log} were made "
        "direct, and nobody knows it any more: the record is in the log, find it by reading"
    )


class UnknownLog(Mistake):
    code = "unknown-log"
    status = 404
    may_pass = True
    says = "there is no log {log}: choose one of those that the service lists, or create it"

    def __init__(self, log: str) -> None:
        super().__init__(log=log)


class WrongEngine(Mistake):
    """The log is another engine's, and was asked for what only a Bolt log has."""

    code = "wrong-engine"
    status = 409
    says = (
        "{log} is a log of the {engine} engine, which takes no {asked} in this way: open it by "
        "its name with a client or command line that is as new as the server, and knows that engine"
    )

    def __init__(self, log: str, engine: str, asked: str) -> None:
        super().__init__(log=log, engine=engine, asked=asked)


class FrontDiffers(Damage):
    """A front that went on would lose acknowledged appends, or commit some again."""

    code = "front-differs"
    says = (
        "log {log} holds {records} records of its lazy front, and the journal of the front's "
        "leader goes on from {ordered}: one of the two is an older copy, so the front takes no "
        "appends. Bring the newer copy back; the log can be read and forked as it is"
    )

    def __init__(self, log: int, records: int, ordered: int) -> None:
        super().__init__(log=log, records=records, ordered=ordered)


class LazyAppendsOnly(Mistake):
    """An append to a log with a lazy front didn't come through the front."""

    code = "lazy-appends-only"
    status = 409
    says = (
        "{log} takes appends through its lazy front only, or they would overtake what that has "
        "acknowledged: open it by its name with the Python client or the command line, or append "
        "to a fork of it"
    )

    def __init__(self, log: str) -> None:
        super().__init__(log=log)


class NotOffered(Mistake):
    """A log was asked for a verb that logs of its engine don't have."""

    code = "not-offered"
    status = 409
    says = "{log} is a log of the {engine} engine, and these have no {verb}: they offer {offers}"

    def __init__(self, log: str, engine: str, verb: str, offers: str) -> None:
        super().__init__(log=log, engine=engine, verb=verb, offers=offers)


class EngineNotServed(Mistake):
    """Nothing behind this service runs logs of the engine that was asked for."""

    code = "engine-not-served"
    status = 409
    says = (
        "{log} can't be created: this service runs no {engine} logs itself; give the addresses of "
        "its sequencers, on Kubernetes by a Log resource with `engine: {engine}`, or create it in "
        "a service that `anabranch up` runs"
    )

    def __init__(self, log: str, engine: str) -> None:
        super().__init__(log=log, engine=engine)


class FrontNotServed(Mistake):
    """Nothing behind this service runs the lazy front that a log was to have."""

    code = "front-not-served"
    status = 409
    says = (
        "{log} can't have lazy appends: this service runs no lazy fronts itself; on Kubernetes "
        "declare a Log resource with `appends: Lazy`, or use a service that `anabranch up` or "
        "`anabranch up --processes` runs, or direct appends"
    )

    def __init__(self, log: str) -> None:
        super().__init__(log=log)


class LogExists(Mistake):
    code = "log-exists"
    status = 409
    says = "{log} exists already: choose another name"

    def __init__(self, log: str) -> None:
        super().__init__(log=log)


class OwnedByAnother(Mistake):
    code = "owned-by-another"
    status = 409
    says = "{log} is declared by {owner}: let that release it first, or choose another log"

    def __init__(self, log: str, owner: str) -> None:
        super().__init__(log=log, owner=owner)


class OwnsAnother(Mistake):
    code = "owns-another"
    status = 409
    says = "{owner} declares {log}, and nobody declares two: have it released first"

    def __init__(self, owner: str, log: str) -> None:
        super().__init__(owner=owner, log=log)


class BadName(Mistake):
    code = "bad-name"
    status = 422
    says = "{name!r} can't be a name: {reason}"

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(name=name, reason=reason)


class OutOfRange(Mistake):
    code = "out-of-range"
    status = 416
    says = "{what} {log} is from {start} to {last}, both included: {position} isn't"

    BEGIN = "a position to begin at in"
    TRIM = "a position to trim before in"
    CURSOR = "a position for a cursor of"
    PAST = "the last position that a severed fork takes from"
    SCAN = "a position to scan to in"
    PAGE = "a position of the scan plan of"

    def __init__(self, log: str, position: int, start: int, last: int, what: str = BEGIN) -> None:
        super().__init__(what=what, log=log, position=position, start=start, last=last)
        if last < start:
            self.message = f"{log} holds no records, so {position} can't be {what} it"
            self.args = (self.message,)


class NotPromotable(Mistake):
    code = "not-promotable"
    status = 409
    says = "{log} can't be promoted: {reason}; only continuous forks created promotable can"

    def __init__(self, log: str, reason: str) -> None:
        super().__init__(log=log, reason=reason)


class IsRoot(Mistake):
    code = "is-root"
    status = 409
    says = "{log} is a root log, which can't be squashed: delete it"

    def __init__(self, log: str) -> None:
        super().__init__(log=log)


class NotRoot(Mistake):
    code = "not-root"
    status = 409
    says = "{log} is a fork, which can't be deleted as a log: squash it"

    def __init__(self, log: str) -> None:
        super().__init__(log=log)


class LogHasForks(Mistake):
    code = "log-has-forks"
    status = 409
    says = (
        "{log} has {forks} forks: squash them first, or delete with force, which squashes its "
        "continuous forks and lets severed ones keep what they need"
    )

    def __init__(self, log: str, forks: int) -> None:
        super().__init__(log=log, forks=forks)
