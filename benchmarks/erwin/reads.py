"""Figures 8 and 9: readers a little behind, and at the tail."""

from msgspec.structs import replace

from benchmarks.erwin.compare import ROUNDS, means, notes, rounds, systems, times_lower, times_ours
from benchmarks.erwin.deployment import ERWIN, Setting
from benchmarks.erwin.workload import Latencies, Load
from benchmarks.report import Chart, Found, Line, Row, row
from benchmarks.size import Size

NEAR, FAR = Setting(delay_us=100), Setting(delay_us=1_000)
RATES = (25.0, 50.0)
"""Appends a second of each of four clients."""
LOAD = Load(clients=4)
CASES = (
    ("3 ms behind", NEAR, 3.0, 1.1),
    ("30 ms behind", FAR, 30.0, 1.1),
    ("at the tail", FAR, 0.0, None),
)


def run(size: Size) -> Found:
    count = size.of(ROUNDS, 1)
    rows: list[Row] = []
    points: list[tuple[float | str, float]] = []
    for what, setting, lag_ms, bar in CASES:
        for rate in size.of(RATES, RATES[:1]):
            load = replace(LOAD, rate=rate, lag_ms=lag_ms)
            found = rounds(count, systems(setting), load)
            named = f"{what}, {LOAD.clients * rate:g}/s, {setting.delay_us / 1_000:g} ms one way"
            slow = [100 * each for each in means(found, ERWIN, Latencies.slow_share)]
            rows += [
                times_ours(f"{named}: read, mean", found, Latencies.read_mean, at_most=bar),
                times_ours(f"{named}: read, median", found, Latencies.read_median),
                row(f"{named}: reads of Erwin that waited", slow, "%"),
                times_lower(f"{named}: append, mean", found, Latencies.mean),
            ]
            points.append((f"{what}\n{LOAD.clients * rate:g}/s", sorted(slow)[len(slow) // 2]))
    chart = Chart(
        title="Reads that waited until their position was stable (figures 8 and 9)",
        x="",
        y="% of reads",
        lines=[Line("Erwin", points)],
    )
    ways = (
        "ordering takes seven messages after the first: to a primary, to its backups and back, to "
        "the leader, to all members and back, and to the shards. The acknowledgement takes one of "
        "these and the read's request another, so a read finds its record stable if it comes five "
        "delays and the processes' own time for seven messages, some 1.5 ms here, after the "
        "append: 2 ms at 0.1 ms one way, 6.5 ms at 1 ms. The paper's 3 ms are a hundred of its "
        "round trips; here 3 ms at 0.1 ms are fifteen, and 30 ms at 1 ms as many. At 0.1 ms a read "
        "takes 0.2 ms on the way and more than that in the client's and the shard's Python"
    )
    paper = (
        "the paper: a reader 3 ms behind reads about as fast as Corfu's; at the tail reads pay for "
        "ordering, more at low rates. Its artifact here: 1.6 % of reads waited 3 ms behind, and "
        "93 % at the tail"
    )
    return Found(rows, [chart], [*notes(FAR, LOAD, count), ways, paper])
