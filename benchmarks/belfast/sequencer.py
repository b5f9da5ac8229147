"""Figure 14d, and the sequencers by themselves: up to forty shards, emulated.

What a cut costs its leader, and how long an append takes to be confirmed, by the number of shards.
"""

from collections.abc import Callable
from statistics import median

from msgspec.structs import replace

from benchmarks.belfast.compare import alternating, systems
from benchmarks.belfast.deployment import Setting
from benchmarks.belfast.emulation import Emulated, EmulatedLoad, emulate
from benchmarks.report import Chart, Found, Line, Row, row, versus
from benchmarks.size import Size

SETTING = Setting(t_ord_ms=100)
LOAD = EmulatedLoad()
SHARDS = (2, 10, 20, 40)
ROUNDS = 5

Runs = dict[str, dict[int, list[Emulated]]]


def run(size: Size) -> Found:
    count = size.of(ROUNDS, 1)
    shards = size.of(SHARDS, (2, 8))
    load = replace(LOAD, warm_s=0.5, run_s=1.0) if size.smoke else LOAD
    found: Runs = {name: {each: [] for each in shards} for name in systems(SETTING)}
    for name, setting in alternating(count, systems(SETTING)):
        for each in shards:
            found[name][each].append(emulate(setting, each, load))
    rows = [each for number in shards for each in _rows(number, found, load)]
    return Found(rows, _charts(found, shards, load), _notes(load, count))


def _rows(number: int, found: Runs, load: EmulatedLoad) -> list[Row]:
    named = f"{number} shards"
    ours, theirs = found["Belfast"][number], found["Scalog"][number]
    rows = [
        versus(
            f"{named}, computing {times:g} T_ord: Scalog's end to end over Belfast's",
            [each.end_to_end[at] for each in theirs],
            "ms",
            "Belfast's",
            [each.end_to_end[at] for each in ours],
            at_least=1.0,
        )
        for at, times in enumerate(load.compute_t_ord)
    ]
    rows.append(
        versus(
            f"{named}: confirmed, mean",
            [each.confirmed for each in ours],
            "ms",
            "Scalog's",
            [each.confirmed for each in theirs],
        )
    )
    for system, runs in (("Belfast", ours), ("Scalog", theirs)):
        rows += [
            row(f"{named}, {system}: {what}", [pick(each) for each in runs], unit)
            for what, pick, unit in _FIGURES
        ]
    return rows


_FIGURES: tuple[tuple[str, Callable[[Emulated], float], str], ...] = (
    ("cuts", lambda each: each.cuts_s, "/s"),
    ("CPU of the leader for a cut", lambda each: each.leader_us, "us"),
    ("CPU of all three for a cut", lambda each: each.group_us, "us"),
    ("the leader's share of a core", lambda each: each.leader_us * each.cuts_s / 1e4, "%"),
    ("records", lambda each: each.records_s, "/s"),
    ("cores that the emulation took", lambda each: each.shards_cores, "cores"),
    ("appends refused", lambda each: each.refused, "appends"),
)


def _charts(found: Runs, shards: tuple[int, ...], load: EmulatedLoad) -> list[Chart]:
    times = load.compute_t_ord[0]
    costs = Chart(
        title="What a cut costs its leader",
        x="shards",
        y="CPU for a cut, us",
        lines=[_line(found, name, shards, lambda each: each.leader_us) for name in found],
    )
    latencies = Chart(
        title=f"End to end, computing {times:g} T_ord (figure 14d)",
        x="shards, emulated",
        y="mean, ms",
        lines=[_line(found, name, shards, lambda each: each.end_to_end[0]) for name in found],
    )
    return [latencies, costs]


def _line(
    found: Runs, name: str, shards: tuple[int, ...], pick: Callable[[Emulated], float]
) -> Line:
    points = [(each, median(map(pick, found[name][each]))) for each in shards]
    return Line(name, points)


def _notes(load: EmulatedLoad, count: int) -> list[str]:
    time = (
        f"T_ord {SETTING.t_ord_ms} ms, so that forty shards fit beside three sequencers on two "
        f"cores; {SETTING.delay_us} us one way for every message"
    )
    shards = (
        "the sequencers are processes of their own, with their fsyncs; the shards' machines, "
        "letters and links are the real ones, all in one process, of one replica each, on journals "
        f"that aren't synced; records come from that process: {load.quota} of "
        f"{load.record_bytes} bytes in each T_ord and shard, the quota from the beginning"
    )
    way = (
        "a consumer that computes over whatever is queued is reckoned from when batches came and "
        f"were confirmed; the first {load.warm_s:g} s left out, {load.run_s:g} s measured, the "
        f"median of {count} runs of each, in turns"
    )
    staggered = "from 7 shards on Belfast makes two cuts in a T_ord, one for each half of them"
    paper = (
        "the paper, T_ord 1 ms: throughput as Scalog's up to 40 emulated shards, the benefit in "
        "latency is kept"
    )
    return [time, shards, way, staggered, paper]
