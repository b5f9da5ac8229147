"""Figure 15: one shard of four is slow for some seconds."""

import asyncio

from msgspec.structs import replace

from anabranch.apps.processes.local_log import LocalLog, Node
from benchmarks.belfast.compare import notes
from benchmarks.belfast.deployment import Setting, running
from benchmarks.belfast.timeline import Sampled, between, curve
from benchmarks.belfast.workload import Load, Run, connected
from benchmarks.cluster.local import counted
from benchmarks.report import Chart, Found, Line, row, versus
from benchmarks.size import Size

SETTING = Setting(shards=4, rules={"window": 50, "first_quota": 2})
LOAD = Load(appenders=1, rate=100.0, compute_ms=24.0, warm_s=4.0, run_s=17.0)
WINDOW_S = 50 * SETTING.t_ord_ms / 1_000
AT_S, SLOW_S = 3.0, 5.0
"""When a shard becomes slow, and for how long: in its rest of five windows, as in the paper."""
STOPPED_MS, RUNNING_MS = 5 * SETTING.t_ord_ms, 20
"""Its primary gets a turn after each 5 T_ord, as the paper's waits 5 ms before each report."""
ROUNDS = 5


def run(size: Size) -> Found:
    count = size.of(ROUNDS, 1)
    load = size.of(LOAD, replace(LOAD, warm_s=1.0, run_s=10.0))
    found: list[tuple[Sampled, int, float]] = []
    for _ in range(count):
        with running(SETTING) as local:
            found.append(asyncio.run(_slowed(local, load)))
    onset, recovered = load.warm_s + AT_S, load.warm_s + AT_S + 3 * WINDOW_S
    before = _of(found, load.warm_s, onset - 0.2)
    rows = [
        versus(
            "after three windows, still slow: end to end of the others",
            _of(found, recovered, onset + SLOW_S),
            "ms",
            "before",
            before,
            at_most=1.2,
        ),
        versus(
            "when it isn't slow any more: end to end of the others",
            _of(found, onset + SLOW_S, load.warm_s + load.run_s),
            "ms",
            "before",
            before,
            at_most=1.2,
        ),
        versus(
            "in the first window: end to end of the others",
            _of(found, onset, onset + WINDOW_S),
            "ms",
            "before",
            before,
        ),
        versus(
            "in the second and the third: end to end of the others",
            _of(found, onset + WINDOW_S, recovered),
            "ms",
            "before",
            before,
        ),
        row("rests given", [rests for _, _, rests in found], "rests"),
        row("fails", [fails for _, fails, _ in found], "fails"),
    ]
    chart = Chart(
        title="A straggler among four shards (figure 15)",
        x="seconds",
        y="end to end latency of the others, ms",
        lines=[Line("Belfast", curve(found[-1][0], 0.25))],
    )
    slow = (
        f"one shard's primary is stopped for {STOPPED_MS} ms and runs for {RUNNING_MS} ms, by "
        f"turns, for {SLOW_S:g} s; a window is {WINDOW_S:g} s; e2e is of the other three shards"
    )
    paper = (
        "the paper: each report is 5 ms late; latency falls when the straggler's quota is 0, for "
        "five windows, and stays low"
    )
    return Found(rows, [chart], [*notes(SETTING, LOAD, count), slow, paper])


async def _slowed(local: LocalLog, load: Load) -> tuple[Sampled, int, float]:
    """What the others' consumers saw; fails; how often the leader gave a shard a rest."""
    *others, slow = local.shards
    async with connected(local.layout.url, SETTING.delay_us) as log:
        watched, straggler = Run(log, others, load), Run(log, [slow], load)
        slowing = asyncio.create_task(_slow(local.shards[slow][0], load.warm_s + AT_S))
        found, of_slow = await asyncio.gather(
            watched.measured(lambda: None), straggler.measured(lambda: None)
        )
        await slowing
        rests = await asyncio.to_thread(_rests, local)
    return found.end_to_end, found.fails + of_slow.fails, rests


async def _slow(node: Node, at_s: float) -> None:
    loop = asyncio.get_running_loop()
    await asyncio.sleep(at_s)
    end_s = loop.time() + SLOW_S
    while loop.time() < end_s:
        node.pause()
        await asyncio.sleep(STOPPED_MS / 1_000)
        node.resume()
        await asyncio.sleep(RUNNING_MS / 1_000)


def _rests(local: LocalLog) -> float:
    return max(counted(node)["sequencer_rests"] for node in local.sequencers)


def _of(found: list[tuple[Sampled, int, float]], low_s: float, high_s: float) -> list[float]:
    return [between(sampled, low_s, high_s) for sampled, _, _ in found]
