"""Belfast: windows of predetermined cuts, under rules that the SequencerSet declares."""

from collections.abc import Iterator

from msgspec.structs import asdict, replace

from anabranch_operator.api.anabranch_names import Rules
from anabranch_operator.api.conditions import Reason, Type
from anabranch_operator.api.sequencers import SequencerSetStatus, rules_of
from anabranch_operator.plan.belfast.report import FREE_WILL
from anabranch_operator.plan.engine.status import Said
from anabranch_operator.plan.engine.world import Sequencers, Shards
from anabranch_operator.plan.groups import quota
from anabranch_operator.plan.groups.engine import GroupEngine, Settings
from anabranch_operator.plan.groups.report import Report, Standing
from anabranch_operator.plan.groups.shard_members import Group

_SEATED = (Standing.SEATED, Standing.LEAVING)


def _sequencer_settings(group: Sequencers) -> Settings:
    """Rules that aren't as they are anyway: a new default comes with a new image."""
    plain = asdict(Rules())
    return {
        f"RULES_{name.upper()}": str(value).lower()
        for name, value in asdict(rules_of(group.spec.rules)).items()
        if value != plain[name]
    }


def _shard_settings(group: Shards, _: int) -> Settings:
    return {"QUOTA": str(group.spec.quota), "LOG_QUOTA_FILE": quota.FILE}


def _sequencer_status(status: SequencerSetStatus, report: Report) -> SequencerSetStatus:
    cutting = report.cutting
    if cutting is None:
        return status
    return replace(status, term=cutting.term, mode=cutting.mode, window=cutting.window)


def _shard_conditions(found: Group) -> Iterator[Said]:
    yield _window_open(found)


def _window_open(found: Group) -> Said:
    away = found.away
    if away is not None or found.status is None:
        return Said(Type.WINDOW_OPEN, False, *(away or (Reason.NO_WINDOW, "")))
    if not any(each.standing in _SEATED for each in found.shards):
        message = "no shard of the group takes appends"
        return Said(Type.WINDOW_OPEN, False, Reason.NO_WINDOW, message)
    cutting = found.status.cutting
    if cutting is not None and cutting.mode == FREE_WILL:
        message = "cuts follow the shards, and nothing is delivered before its cut"
        return Said(Type.WINDOW_OPEN, False, Reason.FREE_WILL, message)
    # Numbers that move with every window belong into fields: a message would be news each time.
    message = "shards deliver speculatively in the present window"
    return Said(Type.WINDOW_OPEN, True, Reason.WINDOW_PUBLISHED, message)


BELFAST = GroupEngine(
    sequencer_settings=_sequencer_settings,
    shard_settings=_shard_settings,
    sequencer_status=_sequencer_status,
    obstacle=lambda _: None,
    flaws=lambda _: iter(()),
    sequencer_conditions=lambda _: iter(()),
    shard_conditions=_shard_conditions,
    unreached="the leader doesn't reach",
    joins="waiting for the next window",
    leaves="will leave at the end of the windows that count on it",
    leaving_reason=Reason.AWAITING_BOUNDARY,
    returns=(Standing.LEFT,),
)
