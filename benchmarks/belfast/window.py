"""Figure 12: what the size of a window costs: nothing, where the next one is there in time."""

from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

from msgspec.structs import replace

from benchmarks.belfast.compare import Figures, alternating, notes, observed
from benchmarks.belfast.deployment import Setting, running
from benchmarks.belfast.workload import Load
from benchmarks.report import Chart, Found, Line, Row, row, versus
from benchmarks.size import Size

SETTING = Setting(rules={"first_quota": 8})
LOAD = Load(warm_s=3.0, run_s=5.0)
WINDOWS = (5, 10, 50, 100, 500)
USUAL = 100
ROUNDS = 5
_SMOKE = (5, USUAL)


@dataclass(frozen=True, slots=True)
class _Run:
    figures: Figures
    stalled: float
    """T_ord, of all primaries together, by window."""


def run(size: Size) -> Found:
    count = size.of(ROUNDS, 1)
    sizes = size.of(WINDOWS, _SMOKE)
    chosen = {
        str(each): replace(SETTING, rules={**SETTING.rules, "window": each}) for each in sizes
    }
    found: dict[int, list[_Run]] = {each: [] for each in sizes}
    for name, setting in alternating(count, chosen):
        window = int(name)
        load = replace(LOAD, warm_s=0.5, run_s=1.0) if size.smoke else _long_enough(window)
        with running(setting) as local:
            latencies, usage = observed(local, setting, load)
        t_ord_ns = setting.t_ord_ms * 1e6
        stalled = usage.stalled_ns / t_ord_ns / max(1.0, usage.cuts / window)
        found[window].append(_Run(Figures.of(latencies, load, usage), stalled))
    rows = [each for window in sizes for each in _rows(window, found)]
    ends = [(each, _middle(found[each], lambda run: run.end_to_end)) for each in sizes]
    appends = [(each, _middle(found[each], lambda run: run.append)) for each in sizes]
    chart = Chart(
        title="Latency by window (figure 12)",
        x="cuts of a window",
        y="mean, ms",
        lines=[Line("end to end", ends), Line("append", appends)],
        log_x=True,
    )
    return Found(rows, [chart], [*notes(SETTING, LOAD, count), *_BESIDE])


_BESIDE = [
    (
        "a window of 500 is measured for 9 s instead, in which one ends; quotas are right from the "
        "beginning (8 records in a T_ord)"
    ),
    (
        "the paper's artifact waits one T_ord at the end of each window of 5, and 0.07% of it at "
        "one of 100, for the next window's quotas: here these are published half a window ahead, "
        "or 10 rounds where that is more"
    ),
]


def _long_enough(window: int) -> Load:
    return replace(LOAD, run_s=9.0) if window > USUAL else LOAD


def _rows(window: int, found: dict[int, list[_Run]]) -> list[Row]:
    runs, usual = found[window], found[USUAL]
    named = f"windows of {window}"
    rows = [
        row(
            f"{named}: stalled at an end, of all primaries",
            [each.stalled for each in runs],
            "T_ord",
            at_most=0.01,
        ),
        row(f"{named}: append, mean", [each.figures.append for each in runs], "ms"),
        row(
            f"{named}: no-ops beside records",
            [100 * each.figures.noop_share for each in runs],
            "%",
        ),
        row(f"{named}: fails", [each.figures.fails for each in runs], "fails"),
    ]
    end_to_end = [each.figures.end_to_end for each in runs]
    if window == USUAL:
        return [row(f"{named}: end to end, mean", end_to_end, "ms"), *rows]
    compared = versus(
        f"{named}: end to end, mean",
        end_to_end,
        "ms",
        f"that with {USUAL}",
        [each.figures.end_to_end for each in usual],
        at_most=1.1,
    )
    return [compared, *rows]


def _middle(runs: list[_Run], pick: Callable[[Figures], float]) -> float:
    return median(pick(each.figures) for each in runs)
