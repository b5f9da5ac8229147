"""Erwin: views of sequencers that a controller changes, and shards that it opens and closes."""

from collections.abc import Iterator
from functools import partial

from msgspec.structs import replace

from anabranch_operator.api.common import Durability
from anabranch_operator.api.conditions import Reason, Type
from anabranch_operator.api.sequencers import Configurations, Mode, SequencerSetStatus
from anabranch_operator.plan.engine.status import Said
from anabranch_operator.plan.engine.world import Sequencers, Shards
from anabranch_operator.plan.groups import quota, views
from anabranch_operator.plan.groups.engine import GroupEngine, Settings
from anabranch_operator.plan.groups.report import Report, Standing
from anabranch_operator.plan.groups.shard_members import Group
from anabranch_operator.plan.groups.shard_pod import KAFKA_FILE

_ENGINE = {"ENGINE": "erwin"}
_WAITS = "it waits until all sequencers and the replicas of a shard are there"


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
    sequencer_volumes=lambda group: iter((quota.mounted(group.ref.name),)),
    shard_settings=_shard_settings,
    sequencer_status=_sequencer_status,
    obstacle=partial(views.obstacle, waits=_WAITS),
    flaws=views.flaws,
    sequencer_conditions=views.conditions,
    shard_conditions=_shard_conditions,
    unreached="the view goes on without",
    joins="waiting until all replicas are there",
    leaves="closed to new records, and served until the log is trimmed to its present tail",
    leaving_reason=Reason.AWAITING_TRIM,
    returns=(Standing.LEFT, Standing.LEAVING),
)
