"""Figure 13: two shards more under load, and two less again."""

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean

from msgspec.structs import replace

from anabranch.apps.processes.local_log import LocalLog
from anabranch.client.belfast.log import Log
from anabranch.core.belfast.ledger.ledger import Standing
from benchmarks.belfast.compare import alternating, notes, systems
from benchmarks.belfast.deployment import Setting, running
from benchmarks.belfast.newcomers import Newcomers
from benchmarks.belfast.timeline import Sampled, between
from benchmarks.belfast.workload import MS, Latencies, Load, Run, connected
from benchmarks.report import Chart, Found, Line, Row, row, versus
from benchmarks.size import Size
from benchmarks.timing import now

SETTING = Setting(rules={"first_quota": 4, "fail_intervals": 500})
LOAD = Load(appenders=1, rate=200.0, compute_ms=16.0, run_s=15.0)
JOIN_S, STAY_S = 2.0, 5.0
"""After the warm-up; and from when they have seats."""
WINDOW_MS = 100 * SETTING.t_ord_ms
BAR_MS = 2 * WINDOW_MS + 100
ROUNDS = 5
_LOOK_S = 0.01


@dataclass(slots=True)
class _Run:
    old: Latencies
    new: list[list[float]]
    """When appends to each new shard were acknowledged, in ms by the same clock as `let_in`."""
    refused: int = 0
    """Of those to the new shards."""
    let_in: int = 0
    joined_ms: float = 0.0
    """From when all replicas are there to the first append that each has acknowledged."""
    seated_ms: float = 0.0
    """To when a window is published that holds both."""
    left_ms: float = 0.0
    """From the request to when no window counts on either."""

    def lowest(self, load: Load) -> tuple[float, float]:
        """The first two shards' acknowledgements in the worst second, and in the mean one."""
        counts = _acknowledged(self.old.append)
        seconds = [counts[second] for second in _measured(load)]
        return float(min(seconds)), fmean(seconds)


def _acknowledged(appends: Sampled) -> Counter[int]:
    """In each second of a run."""
    return Counter(int((begun / MS + took) / 1_000) for begun, took in appends)


def _measured(load: Load) -> range:
    """The seconds that are."""
    return range(int(load.warm_s), int(load.warm_s + load.run_s))


def run(size: Size) -> Found:
    count = size.of(ROUNDS, 1)
    load = size.of(LOAD, replace(LOAD, warm_s=1.0, run_s=5.0))
    found: dict[str, list[_Run]] = {name: [] for name in systems(SETTING)}
    for name, setting in alternating(count, systems(SETTING)):
        with running(setting) as local:
            found[name].append(asyncio.run(_joined_and_left(local, setting, load)))
    rows = [each for name in found for each in _rows(name, found, load)]
    lines = [Line(name, _seconds(runs[-1], load)) for name, runs in found.items()]
    chart = Chart(
        title="Two shards join and leave (figure 13)",
        x="seconds",
        y="acknowledged records/s, all shards",
        lines=lines,
    )
    return Found(rows, [chart], [*notes(SETTING, load, count), *_BESIDE])


_BESIDE = [
    (
        f"the new shards' processes have started before they may join, after {JOIN_S:g} s; they "
        f"leave {STAY_S:g} s later, with no appends any more; a window is {WINDOW_MS} ms"
    ),
    (
        "joined: until both have acknowledged an append; appending begins when a window is "
        "published in which they have seats"
    ),
    "the paper: no drop, and less than 100 ms later than Scalog's, at a window of 100 ms",
]


async def _joined_and_left(local: LocalLog, setting: Setting, load: Load) -> _Run:
    async with connected(local.layout.url, setting.delay_us) as log:
        run = Run(log, list(local.shards), load)
        result = _Run(run.latencies, [])
        main = asyncio.create_task(run.measured(lambda: None))
        coming = asyncio.to_thread(Newcomers, local, setting, 2)
        held, _ = await asyncio.gather(coming, asyncio.sleep(load.warm_s + JOIN_S))
        result.let_in = began = now()
        held.let_in()
        await _until(log, held.names, lambda standing: standing is Standing.SEATED)
        result.seated_ms = (now() - began) / MS
        await _used(log, held.names, load, result)
        result.joined_ms = max(min(ends) - began / MS for ends in result.new)
        began = now()
        for name in held.names:
            await log.leave(name)
        await _until(log, held.names, lambda standing: standing is Standing.LEFT)
        result.left_ms = (now() - began) / MS
        await main
    return result


async def _used(log: Log, names: list[str], load: Load, result: _Run) -> None:
    """Appended to for so long."""
    stay = replace(load, warm_s=0.0, run_s=STAY_S)
    runs = [Run(log, [], stay) for _ in names]
    began = now()
    for each in runs:
        await each.measured(lambda: None)
    await asyncio.gather(
        *(run.join(name, load.appenders, load.rate) for name, run in zip(names, runs, strict=True))
    )
    for each in runs:
        result.refused += each.latencies.refused
        result.new.append([(began + begun) / MS + took for begun, took in each.latencies.append])


async def _until(log: Log, names: Sequence[str], there: Callable[[Standing], bool]) -> None:
    """All of these stand so."""
    while True:
        shards = {each.name: each.standing for each in (await log.status()).shards}
        if all(name in shards and there(shards[name]) for name in names):
            return
        await asyncio.sleep(_LOOK_S)


def _rows(name: str, found: dict[str, list[_Run]], load: Load) -> list[Row]:
    runs = found[name]
    ours = name == "Belfast"
    lowest = [each.lowest(load) for each in runs]
    fails = [each.old.fails + each.old.refused for each in runs]
    bar_ms = BAR_MS if ours else None
    return [
        versus(
            f"{name}: first two shards, in the worst second",
            [low for low, _ in lowest],
            "records/s",
            "its mean",
            [mean for _, mean in lowest],
            at_least=0.9 if ours else None,
        ),
        row(f"{name}: fails", fails, "fails", at_most=0 if ours else None),
        row(f"{name}: appends the new shards refused", [each.refused for each in runs], "records"),
        row(f"{name}: seat published", [each.seated_ms for each in runs], "ms"),
        row(f"{name}: joined", [each.joined_ms for each in runs], "ms", at_most=bar_ms),
        row(f"{name}: left", [each.left_ms for each in runs], "ms", at_most=bar_ms),
        row(f"{name}: end to end, mean", [_whole(each, load) for each in runs], "ms"),
    ]


def _whole(each: _Run, load: Load) -> float:
    return between(each.old.end_to_end, load.warm_s, load.warm_s + load.run_s)


def _seconds(each: _Run, load: Load) -> list[tuple[float, float]]:
    """Of all shards."""
    counts = _acknowledged(each.old.append)
    for end in (end for ends in each.new for end in ends):
        since_s = load.warm_s + JOIN_S + (end - each.let_in / MS) / 1_000
        counts[int(since_s)] += 1
    return [(second, counts[second]) for second in _measured(load)]
