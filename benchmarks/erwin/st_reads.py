"""Figure 14: reads of 25 records in mode st, a second behind the appends and at the tail."""

from functools import partial
from statistics import median

from msgspec.structs import replace

from benchmarks.erwin.compare import ROUNDS, once
from benchmarks.erwin.deployment import Setting
from benchmarks.erwin.workload import Latencies, Load
from benchmarks.report import Chart, Found, Line, Row, row, versus
from benchmarks.size import Size
from benchmarks.timing import interleaved

SETTING = Setting(mode="st", shards=3, copies=2, delay_us=500)
LOAD = Load(clients=8, rate=20.0, run_s=4.0, lag_ms=0.0, read_records=25)
BEHIND, AT_TAIL = "1 s behind", "at the tail"
ONE_ST, ONE_M = "one record, mode st", "one record, mode m"
BEHIND_BAR_PERCENT = 1.0
"""The paper: none is slow. Readers' first requests of a run may be."""


def run(size: Size) -> Found:
    count = size.of(ROUNDS, 1)
    load = size.of(LOAD, replace(LOAD, run_s=1.0, read_records=5))
    one = replace(load, lag_ms=1_000.0, read_records=1)
    found = interleaved(
        count,
        {
            BEHIND: partial(once, SETTING, replace(load, lag_ms=1_000.0)),
            AT_TAIL: partial(once, SETTING, load),
            ONE_ST: partial(once, SETTING, one),
            ONE_M: partial(once, replace(SETTING, mode="m"), one),
        },
    )
    rows: list[Row] = []
    for what in (BEHIND, AT_TAIL):
        slow = [100 * each.slow_share() for each in found[what]]
        bar = BEHIND_BAR_PERCENT if what == BEHIND else None
        rows += [
            row(f"{what}: read of {load.read_records} records, mean", _means(found[what]), "ms"),
            row(
                f"{what}: requests to shards that waited or came too early", slow, "%", at_most=bar
            ),
        ]
    rows += [
        versus(
            "at the tail: read, mean", _means(found[AT_TAIL]), "ms", BEHIND, _means(found[BEHIND])
        ),
        versus(
            "one record, 1 s behind: mode st",
            _means(found[ONE_ST]),
            "ms",
            "m",
            _means(found[ONE_M]),
        ),
    ]
    chart = Chart(
        title="Reads of 25 records in mode st (figure 14)",
        x="",
        y="ms, mean",
        lines=[
            Line("Erwin-st", [(each, median(_means(found[each]))) for each in (BEHIND, AT_TAIL)])
        ],
    )
    return Found(rows, [chart], _notes(load, count))


def _means(runs: list[Latencies]) -> list[float]:
    return [each.read_mean() for each in runs]


def _notes(load: Load, count: int) -> list[str]:
    how = (
        f"{SETTING.shards} shards of {SETTING.copies} replicas, 3 sequencers, durability "
        f"{SETTING.durability}, {SETTING.delay_us} us one way; {load.clients} closed loops of at "
        f"most {load.rate:g} appends/s, records of {load.record_bytes} bytes, read at the rate at "
        f"which they are appended; {count} rounds by turns"
    )
    ways = (
        "a read asks one shard, which answers with its own records and says which shards have the "
        "others; these are asked at the same time. So several shards cost two round trips, where "
        "the paper's client has read the positions' shards ahead"
    )
    paper = (
        "the paper, 200,000/s: no read waits 1 s behind, very few at the tail, which is only "
        "slightly slower; reads of one record are as fast as in mode m. Here 25 records take as "
        "long to append as some twenty orderings take, there as one: so a read at the tail waits "
        "for its last records"
    )
    return [how, ways, paper]
