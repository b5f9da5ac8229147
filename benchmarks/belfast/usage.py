"""What a log's processes used, and what they say they did."""

from dataclasses import dataclass

from anabranch.apps.processes.local_log import LocalLog
from benchmarks.cluster.local import counted
from benchmarks.server import cpu_s
from benchmarks.timing import now


@dataclass(frozen=True, slots=True)
class Usage:
    at: int
    cpu_s: float
    sequencer_cpu_s: float
    """Of the leader, or of a group of one."""
    records: float
    noops: float
    cuts: float
    stalled_ns: float
    """That primaries had nothing published to go on with, all together."""

    def __sub__(self, before: "Usage") -> "Usage":
        return Usage(
            self.at - before.at,
            self.cpu_s - before.cpu_s,
            self.sequencer_cpu_s - before.sequencer_cpu_s,
            self.records - before.records,
            self.noops - before.noops,
            self.cuts - before.cuts,
            self.stalled_ns - before.stalled_ns,
        )

    @property
    def cores(self) -> float:
        return self.cpu_s / (self.at / 1e9)


def used(local: LocalLog) -> Usage:
    """Since the processes began."""
    shards = [counted(node) for replicas in local.shards.values() for node in replicas[:1]]
    sequencers = [counted(node) for node in local.sequencers]
    return Usage(
        now(),
        sum(cpu_s(node.pid) for node in local.processes),
        max(cpu_s(node.pid) for node in local.sequencers),
        sum(shard["shard_records"] for shard in shards),
        sum(shard["shard_noops"] for shard in shards),
        max(sequencer["sequencer_cuts"] for sequencer in sequencers),
        sum(shard["shard_stalled"] for shard in shards),
    )
