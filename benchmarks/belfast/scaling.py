"""Figure 14a to c: latency by the number of shards, all of them real; with cuts that are staggered
and without.
"""

from collections.abc import Mapping

from msgspec.structs import replace

from benchmarks.belfast.compare import Rounds, notes, rounds, systems
from benchmarks.belfast.deployment import Setting
from benchmarks.belfast.workload import Load
from benchmarks.report import Chart, Found, Line, Row, row
from benchmarks.size import Size

SETTING = Setting()
SHARDS = (2, 4, 6, 8, 10)
ONE_COPY_FROM = 6
STAGGERED_FROM = 7
RECORDS_S = 800.0
"""Of all shards together, whatever their number: the cores are the same two."""
LOAD = Load(appenders=1, compute_ms=24.0, warm_s=3.0, run_s=3.0)
ROUNDS = 5
_UNSTAGGERED = "Belfast, not staggered"


def run(size: Size) -> Found:
    count = size.of(ROUNDS, 1)
    numbers = size.of(SHARDS, (2,))
    found = {each: rounds(count, _systems(each), _load(each, size)) for each in numbers}
    rows = [each for number in numbers for each in _rows(number, found[number])]
    chart = Chart(
        title="End to end latency by shards (figure 14b)",
        x="shards",
        y="mean, ms",
        lines=[Line(name, _points(name, found)) for name in systems(SETTING)],
    )
    return Found(rows, [chart], [*notes(SETTING, LOAD, count), *_BESIDE])


_SHARE = (
    f"all shards together take {RECORDS_S:g} records/s, by one appender each; from "
    f"{ONE_COPY_FROM} shards on they have one replica each"
)
_FIRST = "quotas are right from the beginning, so that no window is spent on finding them"
_PAPER = (
    "the paper, 10 K records/s a shard and T_ord 1 ms: end to end 1.66x lower with 2 shards, 1.4x "
    "with 10, and staggered cuts are faster than those that are not"
)
_BESIDE = [_SHARE, _FIRST, _PAPER]


def _load(number: int, size: Size) -> Load:
    load = replace(LOAD, rate=RECORDS_S / number)
    return replace(load, warm_s=0.5, run_s=1.0) if size.smoke else load


def _systems(number: int) -> Mapping[str, Setting]:
    quota = max(1, round(RECORDS_S / number * SETTING.t_ord_ms / 1_000))
    setting = replace(
        SETTING,
        shards=number,
        copies=1 if number >= ONE_COPY_FROM else SETTING.copies,
        rules={"first_quota": quota},
    )
    chosen = systems(setting)
    if number >= STAGGERED_FROM:
        rules = {**setting.rules, "stagger": False}
        chosen[_UNSTAGGERED] = replace(setting, rules=rules)
    return chosen


def _rows(number: int, found: Rounds) -> list[Row]:
    named = f"{number} shards"
    rows = [
        found.versus(f"{named}, end to end, mean", lambda each: each.end_to_end, at_least=1.0),
        found.versus(f"{named}, end to end, p99", lambda each: each.end_to_end_p99),
    ]
    if _UNSTAGGERED in found.found:
        rows.append(
            found.versus(
                f"{named}, end to end, mean", lambda each: each.end_to_end, against=_UNSTAGGERED
            )
        )
    for system in found.found:
        rows += [
            row(f"{named}, {system}: records", found.column(system, lambda e: e.records_s), "/s"),
            row(f"{named}, {system}: append", found.column(system, lambda e: e.append), "ms"),
            row(f"{named}, {system}: cores", found.column(system, lambda e: e.cores), "cores"),
        ]
    return rows


def _points(name: str, found: Mapping[int, Rounds]) -> list[tuple[float, float]]:
    points: list[tuple[float, float]] = []
    for number, each in found.items():
        ordered = sorted(each.column(name, lambda figures: figures.end_to_end))
        points.append((number, ordered[len(ordered) // 2]))
    return points
