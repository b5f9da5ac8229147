"""Figure 6: an append of Erwin takes one round trip, and one of Corfu takes four."""

from statistics import median

from msgspec.structs import replace

from benchmarks.erwin.compare import ROUNDS, cores, means, notes, rounds, systems, times_lower
from benchmarks.erwin.deployment import CORFU, ERWIN, Setting
from benchmarks.erwin.workload import Latencies, Load
from benchmarks.report import Chart, Found, Line, Row
from benchmarks.size import Size

SETTING = Setting()
LOAD = Load(clients=4, rate=40.0)
CASES = (
    Setting(delay_us=500),
    Setting(delay_us=1_000),
    Setting(delay_us=2_000),
    Setting(delay_us=1_000, shards=5),
    Setting(delay_us=1_000, durability="fsync"),
)
MEAN_BAR, P99_BAR = 3.8, 3.0


def run(size: Size) -> Found:
    count = size.of(ROUNDS, 1)
    load = size.of(LOAD, replace(LOAD, warm_s=0.5, run_s=0.5))
    rows: list[Row] = []
    curves: dict[str, list[tuple[float, float]]] = {ERWIN: [], CORFU: []}
    for setting in size.of(CASES, CASES[:1]):
        found = rounds(count, systems(setting), load)
        # The bars are the paper's, whose appends are acknowledged from memory.
        barred = setting.durability == "memory"
        what = f"{setting.delay_us / 1_000:g} ms one way, {_shards(setting)}"
        what += "" if barred else f", {setting.durability}"
        rows += [
            times_lower(
                f"{what}: append, mean",
                found,
                Latencies.mean,
                at_least=MEAN_BAR if barred else None,
            ),
            times_lower(
                f"{what}: append, p99", found, Latencies.p99, at_least=P99_BAR if barred else None
            ),
            *cores(what, found),
        ]
        if setting.shards == 1 and barred:
            for name, points in curves.items():
                mean = median(means(found, name, Latencies.mean))
                points.append((setting.delay_us / 1_000, mean))
    chart = Chart(
        title="Append latency, one shard (figure 6)",
        x="one-way delay, ms",
        y="mean append latency, ms",
        lines=[Line(name, points) for name, points in curves.items()],
    )
    beside = (
        "the paper: up to 3.8x lower at 30,000 appends/s a shard, 1 and 5 shards; the artifact "
        f"here, 0.5 ms one way: 3.7x to 3.9x. Here {load.clients * load.rate:g} appends/s of all "
        "clients together, whatever the number of shards"
    )
    return Found(rows, [chart], [*notes(SETTING, load, count), beside])


def _shards(setting: Setting) -> str:
    return f"{setting.shards} shard" + ("s" if setting.shards > 1 else "")
