"""A lazy front: views of sequencers before a Bolt log, which keeps what controllers decide."""

from collections.abc import Iterator
from functools import partial

from msgspec.structs import replace

from anabranch_operator.api import names
from anabranch_operator.api.common import Durability
from anabranch_operator.api.conditions import Reason
from anabranch_operator.api.sequencers import SequencerSetStatus
from anabranch_operator.plan.engine.objects import Document
from anabranch_operator.plan.engine.world import Sequencers, Shards
from anabranch_operator.plan.groups import quota, views
from anabranch_operator.plan.groups.engine import Flaw, GroupEngine, Settings
from anabranch_operator.plan.groups.named_pods import DATA_DIR
from anabranch_operator.plan.groups.report import Report
from anabranch_operator.plan.groups.sequencer_pod import log_id
from anabranch_operator.plan.manifests.pod_parts import Mounted

SERVICE_DIR = f"{names.RUN_DIR}/service"
"""Where a pod has the token that it shows to the log service; the chart says so in `SERVICE`."""
_TOKEN_S = 3_600


def _waits(group: Sequencers) -> Flaw | None:
    if log_id(group) is not None:
        return None
    message = (
        "no Log with lazy appends has this SequencerSet: make one that is called like the set, "
        "and names it in spec.sequencers"
    )
    return Reason.LOG_MISSING, message


def _sequencer_settings(group: Sequencers) -> Settings:
    """What another log's sequencers of this name have left on the volumes is never taken for this
    one's appends.
    """
    spec, log = group.spec, log_id(group)
    folder = f"{DATA_DIR}/lazy-{log}"
    settings = {
        "ENGINE": "lazy",
        "DATA": folder,
        "LOG_ID": str(log),
        "DURABILITY": spec.durability.value,
        "LOG_QUOTA_FILE": quota.FILE,
    }
    if spec.durability is Durability.FSYNC:
        # A journal that another log's sequencer had is no earlier state of this one's.
        settings["REACHED_FILE"] = f"{folder}.reached"
    elif spec.accept_loss:
        settings["ACCEPT_LOSS"] = "true"
    return settings


def _volumes(group: Sequencers) -> Iterator[Mounted]:
    yield quota.mounted(group.ref.name)
    token: Document = {
        "audience": names.AUDIENCE,
        "expirationSeconds": _TOKEN_S,
        "path": "token",
    }
    volume = {"name": "service", "projected": {"sources": [{"serviceAccountToken": token}]}}
    yield volume, {"name": "service", "mountPath": SERVICE_DIR, "readOnly": True}


def _no_shards(_: Shards, number: int) -> Settings:
    raise AssertionError(f"a lazy front has no shards, and no shard {number}")


def _sequencer_status(status: SequencerSetStatus, report: Report) -> SequencerSetStatus:
    found = report.sequencing
    if found is None:
        return status
    lasts_ms = found.ring_lasts_ms
    return replace(
        status,
        tail=found.tail,
        backlog=found.backlog,
        lost_views=found.lost_views,
        durability=found.durability or None,
        ring_lasts_seconds=None if lasts_ms is None else lasts_ms // 1_000,
    )


def _flaws(report: Report) -> Iterator[Flaw]:
    yield from views.flaws(report)
    held_up = "" if report.sequencing is None else report.sequencing.held_up
    if held_up:
        yield Reason.NOTHING_COMMITTED, f"the log commits nothing at the moment: {held_up}"


LAZY = GroupEngine(
    sequencer_settings=_sequencer_settings,
    shard_settings=_no_shards,
    sequencer_volumes=_volumes,
    sequencer_status=_sequencer_status,
    waits=_waits,
    obstacle=partial(views.obstacle, waits="it waits until all sequencers are there"),
    flaws=_flaws,
    sequencer_conditions=views.conditions,
    shard_conditions=lambda _: iter(()),
    unreached="the view goes on without",
    joins="",
    leaves="",
    leaving_reason=Reason.NONE_LEAVES,
    returns=(),
)
