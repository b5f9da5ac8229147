"""Figure 7: how much earlier records are delivered, and how much sooner work on them is done."""

from msgspec.structs import replace

from benchmarks.belfast.compare import Rounds, notes, rounds, systems
from benchmarks.belfast.deployment import Setting
from benchmarks.belfast.workload import Load
from benchmarks.report import Chart, Found, Line, Row, row
from benchmarks.size import Size

SETTING = Setting()
LOAD = Load(rate=100.0)
ROUNDS = 5


def run(size: Size) -> Found:
    count = size.of(ROUNDS, 1)
    load = replace(LOAD, warm_s=1.0, run_s=1.0) if size.smoke else LOAD
    rows: list[Row] = []
    bars: list[tuple[str, float]] = []
    for shards in (2, 4):
        setting = replace(SETTING, shards=shards)
        chosen = replace(load, appenders=2 if shards == 2 else 1)
        found = _rows(rounds(count, systems(setting), chosen), shards)
        named = zip(("delivery", "end to end", "its p99"), found, strict=False)
        bars += ((f"{shards} shards, {what}", each.ratio or 0.0) for what, each in named)
        rows += found
    chart = Chart(
        title="Delivery and end to end latency (figure 7)",
        x="",
        y="how many times lower than Scalog's",
        lines=[Line("here", bars)],
    )
    return Found(rows, [chart], [*notes(SETTING, load, count), *_BESIDE])


_PAPER = (
    "the paper, on 10 cores a machine and T_ord 1 ms: delivered 3.2x to 3.5x earlier, mean end to "
    "end 1.6x lower, p99 1.4x (2 shards) and 1.17x (4)"
)
_ARTIFACT = (
    "the authors' artifact on two cores, T_ord 10 ms: 5.8x to 12.7x and 1.26x to 2.06x with 2 "
    "partitions, 4.3x to 5.3x and 1.23x to 1.44x with 4"
)
_BESIDE = [
    "with 4 shards one appender a shard: two cores hold 11 processes and the clients",
    _PAPER,
    _ARTIFACT,
]


def _rows(found: Rounds, shards: int) -> list[Row]:
    named = f"{shards} shards"
    return [
        found.versus(f"{named}, delivery, mean", lambda each: each.delivery, at_least=3.5),
        found.versus(f"{named}, end to end, mean", lambda each: each.end_to_end, at_least=1.6),
        found.versus(f"{named}, end to end, p99", lambda each: each.end_to_end_p99, at_least=1.0),
        *(
            row(f"{named}, {what}", found.column(system, pick), unit)
            for system in found.found
            for what, pick, unit in (
                (f"{system}: append, mean", lambda each: each.append, "ms"),
                (f"{system}: records", lambda each: each.records_s, "/s"),
                (f"{system}: no-ops beside records", lambda each: 100 * each.noop_share, "%"),
                (f"{system}: fails", lambda each: each.fails, "fails"),
                (f"{system}: cores kept busy", lambda each: each.cores, "cores"),
            )
        ),
    ]
