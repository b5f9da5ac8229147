"""Two systems in turn, each on fresh processes, round by round: what disturbs the machine disturbs
them alike.
"""

import asyncio
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from statistics import fmean

from msgspec.structs import replace

from anabranch.apps.processes.local_log import LocalLog
from benchmarks.belfast.deployment import Setting, running
from benchmarks.belfast.usage import Usage, used
from benchmarks.belfast.workload import Latencies, Load, measure
from benchmarks.report import Row, versus


@dataclass(slots=True)
class Figures:
    """Of one run, in ms and records a second."""

    append: float
    append_p99: float
    delivery: float
    end_to_end: float
    end_to_end_p99: float
    queue: float
    waiting: float
    records_s: float
    noop_share: float
    fails: int
    cores: float
    """That all processes of the log, and not the clients, kept busy."""

    @staticmethod
    def of(found: Latencies, load: Load, usage: Usage) -> "Figures":
        return Figures(
            append=Latencies.mean(found.append),
            append_p99=Latencies.at(found.append, 99),
            delivery=Latencies.mean(found.delivery),
            end_to_end=Latencies.mean(found.end_to_end),
            end_to_end_p99=Latencies.at(found.end_to_end, 99),
            queue=fmean(found.queue or [0]),
            waiting=fmean(found.waiting or [0]),
            records_s=len(found.append) / load.run_s,
            noop_share=usage.noops / max(1, usage.records),
            fails=found.fails,
            cores=usage.cores,
        )


@dataclass(slots=True)
class Rounds:
    """Of each system, run by run."""

    found: dict[str, list[Figures]] = field(default_factory=dict[str, list[Figures]])

    def column(self, system: str, pick: Callable[[Figures], float]) -> list[float]:
        return [pick(each) for each in self.found[system]]

    def versus(
        self,
        what: str,
        pick: Callable[[Figures], float],
        *,
        at_least: float | None = None,
        at_most: float | None = None,
        over: str = "Belfast",
        against: str = "Scalog",
        inverse: bool = True,
    ) -> Row:
        """How many times lower `over`'s figure is; or, not inverse, how many times higher."""
        ours, theirs = self.column(over, pick), self.column(against, pick)
        if inverse:
            return versus(
                f"{what}: {against}'s over {over}'s",
                theirs,
                "ms",
                f"{over}'s",
                ours,
                at_least=at_least,
                at_most=at_most,
            )
        return versus(what, ours, "ms", f"{against}'s", theirs, at_least=at_least, at_most=at_most)


def systems(setting: Setting) -> dict[str, Setting]:
    return {"Belfast": setting, "Scalog": replace(setting, free_will=True)}


def rounds(
    count: int,
    chosen: Mapping[str, Setting],
    load: Load,
) -> Rounds:
    """Each on fresh processes in every round."""
    result = Rounds({name: [] for name in chosen})
    for name, setting in alternating(count, chosen):
        with running(setting) as local:
            result.found[name].append(once(local, setting, load))
    return result


def alternating(count: int, chosen: Mapping[str, Setting]) -> Iterator[tuple[str, Setting]]:
    """Every other round goes backwards, so that none always follows the same one."""
    order = list(chosen.items())
    for _ in range(count):
        yield from order
        order.reverse()


def once(local: LocalLog, setting: Setting, load: Load) -> Figures:
    """One run on a log that is there."""
    found, usage = observed(local, setting, load)
    return Figures.of(found, load, usage)


def observed(local: LocalLog, setting: Setting, load: Load) -> tuple[Latencies, Usage]:
    """One run, and what it used after its warm-up."""
    before: list[Usage] = []
    found = asyncio.run(
        measure(
            local.layout.url,
            list(local.shards),
            load,
            setting.delay_us,
            lambda: before.append(used(local)),
        )
    )
    return found, used(local) - before[0]


def notes(setting: Setting, load: Load, count: int) -> list[str]:
    """What must be said beside each figure of a machine with two cores."""
    time = (
        f"T_ord {setting.t_ord_ms} ms instead of the paper's 1 ms, and every other time with it; "
        f"{setting.delay_us} us one way for every message, in our own transport, on both sides"
    )
    log = (
        f"{setting.sequencers} sequencers, {setting.copies} replicas a shard, durability "
        f"{setting.durability}, on both sides; records of {load.record_bytes} bytes, an open loop "
        f"of {load.appenders * load.rate:g} records/s a shard, {load.in_flight} unacknowledged for "
        f"each of {load.appenders} appenders"
    )
    way = (
        f"the first {load.warm_s:g} s left out, {load.run_s:g} s measured, the median of {count} "
        "runs of each, in turns; a consumer's computation is a wait, since it would have a machine "
        "of its own"
    )
    return [time, log, way]
