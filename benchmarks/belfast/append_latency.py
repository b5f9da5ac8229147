"""Figure 9: what adhering to quotas costs an append."""

from statistics import median

from msgspec.structs import replace

from benchmarks.belfast.compare import Rounds, notes, rounds, systems
from benchmarks.belfast.deployment import Setting
from benchmarks.belfast.workload import Load
from benchmarks.report import Chart, Found, Line, Row, row
from benchmarks.size import Size

SETTING = Setting()
SHARDS = (2, 4, 10)
LOAD = Load(compute_ms=0)
RECORDS_S = 800.0
"""Of all shards together, whatever their number: the cores are the same two."""
ROUNDS = 5


def run(size: Size) -> Found:
    count = size.of(ROUNDS, 1)
    rows: list[Row] = []
    curves: dict[str, list[tuple[float, float]]] = {name: [] for name in systems(SETTING)}
    for shards in SHARDS[:1] if size.smoke else SHARDS:
        setting = replace(SETTING, shards=shards, copies=1 if shards == 10 else 2)
        load = replace(LOAD, appenders=2, rate=RECORDS_S / shards / 2)
        if size.smoke:
            load = replace(load, warm_s=1.0, run_s=1.0)
        found = rounds(count, systems(setting), load)
        rows += _rows(found, f"{shards} shards")
        for name, points in curves.items():
            points.append((shards, median(found.column(name, lambda each: each.append))))
    chart = Chart(
        title="Append latency by shards (figure 9)",
        x="shards",
        y="mean append latency, ms",
        lines=[Line(name, points) for name, points in curves.items()],
    )
    beside = (
        "the paper: 5.8% more with 10 shards, staggered; here 10 shards have one replica each, and "
        f"all shards together take {RECORDS_S:g} records/s"
    )
    return Found(rows, [chart], [*notes(SETTING, LOAD, count), beside])


def _rows(found: Rounds, named: str) -> list[Row]:
    mean = found.versus(
        f"{named}: append, mean", lambda each: each.append, at_most=1.06, inverse=False
    )
    late = found.versus(f"{named}: append, p99", lambda each: each.append_p99, inverse=False)
    noops = found.column("Belfast", lambda each: 100 * each.noop_share)
    cores = [
        row(f"{named}, {system}: cores", found.column(system, lambda each: each.cores), "cores")
        for system in found.found
    ]
    return [mean, late, row(f"{named}: no-ops beside records", noops, "%"), *cores]
