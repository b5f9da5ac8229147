"""More shards than a machine has room for: real sequencers, and shards in a process of ours."""

import time
from collections.abc import Sequence

import msgspec

from anabranch.apps.processes.layout import pairs
from benchmarks.belfast.deployment import Setting, running
from benchmarks.belfast.emulated import MODULE, Batch, Emulation, Plan
from benchmarks.belfast.usage import used
from benchmarks.cluster.local import scratch
from benchmarks.cluster.worker import at_work
from benchmarks.server import cpu_s
from benchmarks.timing import mean

MS = 1_000_000


class EmulatedLoad(msgspec.Struct, frozen=True, kw_only=True):
    quota: int = 4
    """Records of each shard in each T_ord: appended as one batch."""
    record_bytes: int = 256
    compute_t_ord: Sequence[float] = (1.2, 2.0)
    warm_s: float = 3.0
    run_s: float = 6.0


class Emulated(msgspec.Struct, frozen=True, kw_only=True):
    """One run, in ms."""

    cuts_s: float
    leader_us: float
    """Of a processor, for each cut."""
    group_us: float
    """All members'."""
    confirmed: float
    delivered: float
    end_to_end: list[float]
    """For each computation."""
    records_s: float
    refused: int
    shards_cores: float
    """What the emulating process took."""


def emulate(setting: Setting, shards: int, load: EmulatedLoad) -> Emulated:
    """With so many, and none that are real."""
    rules = {**setting.rules, "shards_min": shards, "first_quota": load.quota}
    bare = msgspec.structs.replace(setting, shards=0, rules=rules)
    with running(bare) as local, scratch() as folder:
        plan = Plan(
            folder=str(folder),
            cluster=local.layout.cluster,
            sequencers=tuple(each.address for each in local.layout.sequencers),
            shards=tuple(each.address for each in pairs(shards)),
            quota=load.quota,
            record_bytes=load.record_bytes,
            t_ord_ms=setting.t_ord_ms,
            warm_s=load.warm_s,
            run_s=load.run_s,
            delay_us=setting.delay_us,
        )
        with at_work(MODULE, plan, Emulation) as worker:
            worker.begin()
            time.sleep(load.warm_s)
            before, began_s = used(local), cpu_s(worker.pid)
            found = worker.heard()
            usage, busy_s = used(local) - before, cpu_s(worker.pid) - began_s
    batches = [each for shard in found.batches for each in shard]
    consumed = [
        _end_to_end(found.batches, int(each * setting.t_ord_ms * MS)) for each in load.compute_t_ord
    ]
    cuts = max(1.0, usage.cuts)
    return Emulated(
        cuts_s=usage.cuts / (usage.at / 1e9),
        leader_us=usage.sequencer_cpu_s * 1e6 / cuts,
        group_us=usage.cpu_s * 1e6 / cuts,
        confirmed=mean(each.confirmed - each.begun for each in batches) / MS,
        delivered=mean(each.delivered - each.begun for each in batches) / MS,
        end_to_end=[mean(each) / MS for each in consumed],
        records_s=len(batches) * load.quota / load.run_s,
        refused=found.refused,
        shards_cores=busy_s / (usage.at / 1e9),
    )


def _end_to_end(shards: Sequence[Sequence[Batch]], compute_ns: int) -> list[int]:
    """Of a consumer at each shard that computes so long over whatever is queued."""
    took: list[int] = []
    for batches in shards:
        queued = sorted(batches, key=lambda each: each.delivered)
        free, at = 0, 0
        while at < len(queued):
            taken = max(free, queued[at].delivered)
            free = taken + compute_ns
            while at < len(queued) and queued[at].delivered <= taken:
                took.append(max(free, queued[at].confirmed) - queued[at].begun)
                at += 1
    return took
