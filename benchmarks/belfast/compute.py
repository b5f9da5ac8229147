"""Figure 8: how much sooner work is done, by how long it takes."""

from msgspec.structs import replace

from benchmarks.belfast.compare import Figures, alternating, notes, once, systems
from benchmarks.belfast.deployment import Setting, running
from benchmarks.belfast.workload import Load
from benchmarks.report import Chart, Found, Line, Row, row, versus
from benchmarks.size import Size

SETTING = Setting()
LOAD = Load(warm_s=1.0, run_s=4.0)
TIMES_T_ORD = (0.5, 1.0, 1.5, 2.0, 3.0, 5.0, 50.0)
"""A consumer's computation: the paper's 0.5 to 50 ms at a T_ord of 1 ms."""
PAPER = {0.5: 1.17, 1.5: 1.63, 50.0: 1.0}
ROUNDS = 5


def run(size: Size) -> Found:
    count = size.of(ROUNDS, 1)
    times = TIMES_T_ORD[:1] if size.smoke else TIMES_T_ORD
    load = replace(LOAD, warm_s=1.0, run_s=1.0) if size.smoke else LOAD
    found: dict[str, dict[float, list[Figures]]] = {
        name: {each: [] for each in times} for name in systems(SETTING)
    }
    for name, setting in alternating(count, systems(SETTING)):
        with running(setting) as local:
            once(local, setting, replace(load, warm_s=load.warm_s * 4, run_s=1.0))
            for each in times:
                longer = max(load.run_s, 4 * each * setting.t_ord_ms / 1_000)
                computing = replace(load, compute_ms=each * setting.t_ord_ms, run_s=longer)
                found[name][each].append(once(local, setting, computing))
    rows = [row_ for each in times for row_ in _rows(each, found)]
    charts = [
        Chart(
            title="End to end latency by computation (figure 8)",
            x="computation, in T_ord",
            y="Scalog's mean end to end latency over Belfast's",
            lines=[
                Line("here", [(each, _ratio(found, each)) for each in times]),
                Line("the paper's", list(PAPER.items())),
            ],
            log_x=True,
        )
    ]
    return Found(rows, charts, notes(SETTING, load, count))


def _rows(each: float, found: dict[str, dict[float, list[Figures]]]) -> list[Row]:
    ours, theirs = found["Belfast"][each], found["Scalog"][each]
    named = f"computing {each:g} T_ord"
    return [
        versus(
            f"{named}: Scalog's end to end over Belfast's",
            [run.end_to_end for run in theirs],
            "ms",
            "Belfast's",
            [run.end_to_end for run in ours],
            at_least=1.0,
        ),
        row(f"{named}, Belfast: delivery", [run.delivery for run in ours], "ms"),
        row(f"{named}, Belfast: waiting in the queue", [run.queue for run in ours], "ms"),
        row(f"{named}, Belfast: waiting for confirmation", [run.waiting for run in ours], "ms"),
        row(f"{named}, Scalog: delivery", [run.delivery for run in theirs], "ms"),
        row(f"{named}, Scalog: waiting in the queue", [run.queue for run in theirs], "ms"),
    ]


def _ratio(found: dict[str, dict[float, list[Figures]]], each: float) -> float:
    pairs = zip(found["Scalog"][each], found["Belfast"][each], strict=True)
    ratios = sorted(theirs.end_to_end / ours.end_to_end for theirs, ours in pairs)
    return ratios[len(ratios) // 2]
