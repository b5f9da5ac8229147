"""Erwin: views of sequencers that a controller changes, and shards that it opens and closes."""

from collections.abc import Iterator

from msgspec.structs import replace

from anabranch_operator.api.common import Durability
from anabranch_operator.api.conditions import Reason, Type
from anabranch_operator.api.sequencers import Configurations, Mode, SequencerSetStatus
from anabranch_operator.plan.engine.status import Said
from anabranch_operator.plan.engine.world import Sequencers, Shards
from anabranch_operator.plan.groups import quota
from anabranch_operator.plan.groups.engine import Flaw, GroupEngine, Settings
from anabranch_operator.plan.groups.report import Report, Standing
from anabranch_operator.plan.groups.sequencer_members import Sight
from anabranch_operator.plan.groups.shard_members import Group
from anabranch_operator.plan.groups.shard_pod import KAFKA_FILE

_ENGINE = {"ENGINE": "erwin"}


def _sequencer_settings(group: Sequencers) -> Settings:
    spec = group.spec
    settings = {
        **_ENGINE,
        "MODE": (spec.mode or Mode.M).value,
        "DURABILITY": spec.durability.value,
        "CONFIGURATIONS": (spec.configurations or Configurations.ETCD).value.lower(),
        "LOG_QUOTA_FILE": quota.FILE,
    }
    if spec.accept_loss and spec.durability is Durability.MEMORY:
        settings["ACCEPT_LOSS"] = "true"
    return settings


def _shard_settings(group: Shards, number: int) -> Settings:
    box = group.spec.black_box
    if box is None:
        return _ENGINE
    settings = {**_ENGINE, "BLACK_BOX": f"{box.url}-{number}"}
    if box.access_secret:
        settings["KAFKA_FILE"] = KAFKA_FILE
    return settings


def _sequencer_status(status: SequencerSetStatus, report: Report) -> SequencerSetStatus:
    found = report.sequencing
    if found is None:
        return status
    return replace(status, tail=found.tail, backlog=found.backlog, lost_views=found.lost_views)


def _obstacle(report: Report) -> Flaw | None:
    """A log that has a view is ready though nothing can be reconfigured."""
    found = report.sequencing
    why = "" if found is None else found.obstacle or found.unheard
    if not report.view:
        message = why or "it waits until all sequencers and the replicas of a shard are there"
        return Reason.NO_VIEW, f"no view has begun yet: {message}"
    if found is not None and found.changing and found.obstacle:
        return Reason.OBSTRUCTED, f"appends wait for the next view: {found.obstacle}"
    return None


def _flaws(report: Report) -> Iterator[Flaw]:
    found = report.sequencing
    if found is None:
        return
    if found.obstacle:
        yield Reason.OBSTRUCTED, f"the controller can't go on: {found.obstacle}"
    if found.unheard:
        yield Reason.CONTROLLER_AWAY, f"nothing can be reconfigured: {found.unheard}"


def _sequencer_conditions(sight: Sight) -> Iterator[Said]:
    report = sight.status
    changing = "" if report is None or report.sequencing is None else report.sequencing.changing
    if report is None:
        yield Said(Type.SEALED, None, Reason.SEQUENCERS_AWAY, sight.why)
        yield Said(Type.RECONFIGURING, None, Reason.SEQUENCERS_AWAY, sight.why)
        return
    if not report.view:
        yield Said(Type.SEALED, False, Reason.NO_VIEW, "no view has begun yet")
    elif changing:
        message = f"appends wait until view {report.view + 1} has begun"
        yield Said(Type.SEALED, True, Reason.VIEW_SEALED, message)
    else:
        message = "the members of the view take appends"
        yield Said(Type.SEALED, False, Reason.VIEW_STARTED, message)
    if changing:
        message = f"view {report.view + 1} is being made: {changing}"
        yield Said(Type.RECONFIGURING, True, Reason.VIEW_CHANGING, message)
    else:
        yield Said(Type.RECONFIGURING, False, Reason.UNCHANGED, "the view stays as it is")


def _shard_conditions(found: Group) -> Iterator[Said]:
    if found.away is not None or found.status is None or found.status.sequencing is None:
        reason, message = found.away or (Reason.SEQUENCERS_AWAY, found.why)
        yield Said(Type.RECONFIGURING, None, reason, message)
        return
    moving = found.status.sequencing.taking_over
    here = ", ".join(each.name for each in found.shards if each.name in moving)
    if here:
        message = f"{here} gets another primary"
        yield Said(Type.RECONFIGURING, True, Reason.TAKING_OVER, message)
    else:
        yield Said(Type.RECONFIGURING, False, Reason.UNCHANGED, "every shard keeps its primary")


ERWIN = GroupEngine(
    sequencer_settings=_sequencer_settings,
    shard_settings=_shard_settings,
    sequencer_status=_sequencer_status,
    obstacle=_obstacle,
    flaws=_flaws,
    sequencer_conditions=_sequencer_conditions,
    shard_conditions=_shard_conditions,
    unreached="the view goes on without",
    joins="waiting until all replicas are there",
    leaves="closed to new records, and served until the log is trimmed to its present tail",
    leaving_reason=Reason.AWAITING_TRIM,
    returns=(Standing.LEFT, Standing.LEAVING),
)
