"""Figure 13: shards add throughput in mode st, where only ids go through the sequencing layer, and
none in mode m, where all records do.

Two cores hold all processes, so the figure is what each process would bear on a core of its own:
the slowest kind of them is the limit.
"""

from functools import partial
from statistics import median

from benchmarks.erwin.compare import ROUNDS
from benchmarks.erwin.deployment import Deployment, Setting, running
from benchmarks.erwin.flood import RUN_S, Flood, flooded
from benchmarks.erwin.workload import on_loop
from benchmarks.report import Chart, Found, Line, Row, row, versus
from benchmarks.size import Size
from benchmarks.timing import interleaved

SHARDS = (1, 3, 5)
MODES = ("m", "st")
RECORD_BYTES = 4_096
ST_BAR, M_BAR = 2.0, 1.25
"""Five shards over one."""
_TICK_S = 0.01
"""The kernel counts processor time so."""


def run(size: Size) -> Found:
    count = size.of(ROUNDS, 1)
    shards = size.of(SHARDS, (1, 2))
    settings = {
        (mode, each): Setting(mode=mode, shards=each, copies=2, delay_us=0)
        for mode in MODES
        for each in shards
    }
    run_s = size.of(RUN_S, 0.5)
    named = {f"{mode}, {each}": partial(_once, it, run_s) for (mode, each), it in settings.items()}
    found = interleaved(count, named)
    rows: list[Row] = []
    lines: list[Line] = []
    for mode in MODES:
        limits = {each: [_limit(it, each) for it in found[f"{mode}, {each}"]] for each in shards}
        for each, values in limits.items():
            what = f"mode {mode}, {each} shards"
            rows += [
                row(f"{what}: limit, with a core for each process", values, "records/s"),
                row(
                    f"{what}: appended, on two cores",
                    [it.records_s for it in found[f"{mode}, {each}"]],
                    "records/s",
                ),
            ]
        most = max(shards)
        rows.append(
            versus(
                f"mode {mode}, {most} shards: limit",
                limits[most],
                "records/s",
                "one shard's",
                limits[1],
                at_least=ST_BAR if mode == "st" else None,
                at_most=M_BAR if mode == "m" else None,
            )
        )
        if len(shards) > 2:
            before = sorted(shards)[-2]
            rows.append(
                versus(
                    f"mode {mode}, {most} shards: limit beside {before} shards'",
                    limits[most],
                    "records/s",
                    f"{before} shards'",
                    limits[before],
                )
            )
        points = [(each, median(values)) for each, values in limits.items()]
        lines.append(Line(f"mode {mode}", points))
    chart = Chart(
        title="Limit of a log by shards, a core for each process (figure 13)",
        x="shards",
        y="records/s",
        lines=lines,
    )
    how = (
        f"records of {RECORD_BYTES} bytes, one client whose batches are as large as they come; 3 "
        f"sequencers, 2 replicas a shard, durability memory, no delay; {count} rounds by turns. "
        "The limit is records over the processor time of the sequencers, or of the shards, each "
        "divided by their number, whichever is more; clients are left out"
    )
    why = (
        "in mode m one shard is itself the limit: its replicas write journals, and one of two "
        "sends all records on, where one of three sequencers does. From three shards on the "
        "sequencers are the limit"
    )
    paper = "the paper: st takes 700,000 records/s with ten shards, and m flattens quickly"
    return Found(rows, [chart], [how, why, paper])


def _limit(flood: Flood, shards: int) -> float:
    """Sequencers do the same work, and so do the replicas of one shard's share."""
    sequencer_s = flood.usage.sequencers_s / Setting().sequencers
    replica_s = flood.usage.shards_s / (2 * shards)
    return flood.records / max(sequencer_s, replica_s, _TICK_S)


def _once(setting: Setting, run_s: float) -> Flood:
    with running(setting) as deployment:
        return on_loop(_flooded(deployment, run_s))


async def _flooded(deployment: Deployment, run_s: float) -> Flood:
    async with deployment.erwin() as log:
        return await flooded(log, RECORD_BYTES, deployment.used, run_s)
