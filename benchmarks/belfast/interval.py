"""What an ordering interval costs here, from the paper's 1 ms on: why figures have a longer one."""

from collections.abc import Callable
from statistics import median

from msgspec.structs import replace

from benchmarks.belfast.compare import Figures, alternating, notes, once, systems
from benchmarks.belfast.deployment import Setting, running
from benchmarks.belfast.workload import Load
from benchmarks.report import Chart, Found, Line, Row, row, versus
from benchmarks.size import Size

T_ORDS_MS = (1, 2, 5, 10, 20)
COMPUTE_T_ORD = 1.5
LOAD = Load(rate=100.0, warm_s=3.0, run_s=3.0)
ROUNDS = 5
SILENT_MS, FAIL_MS = 400, 1_000
"""As with 20 ms: or at 1 ms a process that waits its turn on two cores would be thought dead."""

Runs = dict[str, dict[int, list[Figures]]]


def run(size: Size) -> Found:
    count = size.of(ROUNDS, 1)
    chosen = size.of(T_ORDS_MS, (5,))
    load = size.of(LOAD, replace(LOAD, warm_s=0.5, run_s=1.0))
    found: Runs = {name: {each: [] for each in chosen} for name in systems(Setting())}
    for t_ord_ms in chosen:
        computing = replace(load, compute_ms=COMPUTE_T_ORD * t_ord_ms)
        for name, setting in alternating(count, systems(_setting(t_ord_ms, load))):
            with running(setting) as local:
                found[name][t_ord_ms].append(once(local, setting, computing))
    rows = [each for t_ord_ms in chosen for each in _rows(found, t_ord_ms)]
    return Found(rows, _charts(found, chosen), [*notes(Setting(), load, count)[1:], *_BESIDE])


_BESIDE = [
    (
        f"computing {COMPUTE_T_ORD:g} T_ord; 1,000 us one way for every message, whatever T_ord "
        f"is; replicas are silent after {SILENT_MS} ms, shards fail after {FAIL_MS} ms"
    ),
    (
        "the authors' artifact on two cores, T_ord 1 ms: delivered 1.5x and 2.3x earlier, end to "
        "end 0.70x and 1.05x"
    ),
]


def _setting(t_ord_ms: int, load: Load) -> Setting:
    quota = max(1, round(load.appenders * load.rate * t_ord_ms / 1_000))
    rules = {
        "first_quota": quota,
        "silent_intervals": SILENT_MS // t_ord_ms,
        "fail_intervals": FAIL_MS // t_ord_ms,
    }
    return Setting(t_ord_ms=t_ord_ms, rules=rules)


def _rows(found: Runs, t_ord_ms: int) -> list[Row]:
    named = f"T_ord {t_ord_ms} ms"
    ours, theirs = found["Belfast"][t_ord_ms], found["Scalog"][t_ord_ms]
    rows = [
        versus(
            f"{named}: Scalog's {what} over Belfast's, mean",
            list(map(pick, theirs)),
            "ms",
            "Belfast's",
            list(map(pick, ours)),
        )
        for what, pick in _LATENCIES
    ]
    for system, runs in (("Belfast", ours), ("Scalog", theirs)):
        rows += [
            row(f"{named}, {system}: {what}", list(map(pick, runs)), unit)
            for what, pick, unit in _FIGURES
        ]
    return rows


_LATENCIES: tuple[tuple[str, Callable[[Figures], float]], ...] = (
    ("delivery", lambda each: each.delivery),
    ("end to end", lambda each: each.end_to_end),
)
_FIGURES: tuple[tuple[str, Callable[[Figures], float], str], ...] = (
    ("append, mean", lambda each: each.append, "ms"),
    ("no-ops beside records", lambda each: 100 * each.noop_share, "%"),
    ("cores kept busy", lambda each: each.cores, "cores"),
    ("fails", lambda each: each.fails, "fails"),
)


def _charts(found: Runs, chosen: tuple[int, ...]) -> list[Chart]:
    def line(name: str, pick: Callable[[Figures], float]) -> Line:
        return Line(name, [(each, median(map(pick, found[name][each]))) for each in chosen])

    def chart(title: str, y: str, pick: Callable[[Figures], float]) -> Chart:
        lines = [line(name, pick) for name in found]
        return Chart(title=title, x="T_ord, ms", y=y, lines=lines, log_x=True)

    return [
        chart("Delivery by ordering interval", "mean, ms", lambda each: each.delivery),
        chart("Cores by ordering interval", "cores of two", lambda each: each.cores),
    ]
