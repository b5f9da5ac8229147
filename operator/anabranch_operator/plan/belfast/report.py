"""A Belfast log's own status, in the words that all engines share."""

from anabranch_operator.api.anabranch_names import Mode, ShardStatus, Status
from anabranch_operator.plan.groups.report import Cutting, Report, ShardReport, Standing

_MODES = {Mode.STEADY: "Steady", Mode.BURSTY: "Bursty", Mode.FREE_WILL: "FreeWill"}
FREE_WILL = _MODES[Mode.FREE_WILL]


def report(status: Status) -> Report:
    return Report(
        leader=status.leader,
        members=status.members,
        reached=(status.leader, *status.reachable),
        age=(status.term, status.index),
        view=status.view,
        trimmed=status.trimmed,
        settled=status.confirmed,
        shards=tuple(map(_shard, status.shards)),
        cutting=Cutting(term=status.term, mode=_MODES[status.mode], window=status.window),
    )


def _shard(shard: ShardStatus) -> ShardReport:
    return ShardReport(
        name=shard.name,
        standing=Standing[shard.standing.name],
        epoch=shard.epoch,
        primary=shard.primary,
        replicas=shard.replicas,
        silent=shard.silent,
        last=shard.last,
        quota=shard.quota,
        lag=shard.lag,
        resting=shard.resting,
    )
