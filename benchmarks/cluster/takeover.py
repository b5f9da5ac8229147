"""How long nothing is appended when the metadata leader ends: killed, and told to end."""

import asyncio
import bisect
import itertools
from dataclasses import dataclass, field
from statistics import median

from anabranch.apps.processes.cluster import Pod
from anabranch.apps.processes.layout import Shape
from anabranch.client import aio
from anabranch.client.bolt.log import Log
from benchmarks.cluster.local import Cluster, running
from benchmarks.report import Chart, Found, Line, row
from benchmarks.size import Size
from benchmarks.timing import now

LEASE_S = 3
APPENDERS = 4
VALUE = bytes(256)

_MS = 1_000_000
_STEADY_S = 1.0
_LOOK_S = 0.05


@dataclass(slots=True)
class _Appends:
    """When each was begun and acknowledged, in the order of acknowledgements."""

    begun: list[int] = field(default_factory=list[int])
    done: list[int] = field(default_factory=list[int])

    def flows_again_ms(self, since: int) -> float | None:
        """Until the first acknowledgement of one that was begun afterwards."""
        start = bisect.bisect_left(self.done, since)
        for begun, done in zip(self.begun[start:], self.done[start:], strict=True):
            if begun >= since:
                return (done - since) / _MS
        return None

    def longest_pause_ms(self, since: int, until: int) -> float:
        """Between two acknowledgements."""
        start, end = bisect.bisect_left(self.done, since), bisect.bisect_left(self.done, until)
        moments = self.done[max(0, start - 1) : end + 1]
        return max(b - a for a, b in itertools.pairwise(moments)) / _MS


class _Found:
    def __init__(self) -> None:
        self.killed: list[float] = []
        self.handed_over: list[float] = []
        self.undisturbed: list[float] = []


def run(size: Size) -> Found:
    kills, hand_overs = size.of((4, 7), (1, 1))
    settings = {"ANABRANCH_LEASE_S": str(LEASE_S)}
    with running(Shape(brokers=1, metadata=size.of(3, 2)), settings) as cluster:
        found = asyncio.run(_measured(cluster, kills, hand_overs))
    most_ms = (LEASE_S + 1) * 1_000
    rows = [
        row("appends undisturbed: the longest pause in a second", found.undisturbed, "ms"),
        row("leader killed, until appends flow again", found.killed, "ms", at_most=most_ms),
        row("leader told to end: the longest pause", found.handed_over, "ms", at_most=200),
    ]
    points = [
        ("undisturbed", median(found.undisturbed)),
        ("told to end", median(found.handed_over)),
        ("killed", median(found.killed)),
    ]
    lines = [Line("the longest pause", list(points))]
    chart = Chart(title="Appends, while the metadata leader ends", x="", y="ms", lines=lines)
    notes = [f"a lease of {LEASE_S} s; {APPENDERS} appends at a time, each after the one before"]
    return Found(rows, [chart], notes)


async def _measured(cluster: Cluster, kills: int, hand_overs: int) -> _Found:
    found = _Found()
    async with aio.connect(cluster.url, timeout=60) as service:
        log = await service.create("orders")
        appends, over = _Appends(), asyncio.Event()
        appenders = [asyncio.create_task(_append(log, appends, over)) for _ in range(APPENDERS)]
        for turn in range(hand_overs + kills):
            leader = await _steady(cluster)
            began = now()
            await asyncio.sleep(_STEADY_S)
            at = now()
            found.undisturbed.append(appends.longest_pause_ms(began, at))
            if turn < hand_overs:
                leader.ask_to_end()
                await asyncio.to_thread(leader.wait_ended)
                await asyncio.sleep(_STEADY_S)
                found.handed_over.append(appends.longest_pause_ms(at, now()))
            else:
                leader.kill()
                found.killed.append(await _again(appends, at))
            leader.launch()
        over.set()
        await asyncio.gather(*appenders)
    return found


async def _append(log: Log, appends: _Appends, over: asyncio.Event) -> None:
    while not over.is_set():
        began = now()
        await log.append(VALUE, timeout=60)
        appends.begun.append(began)
        appends.done.append(now())


async def _steady(cluster: Cluster) -> Pod:
    """Every member is ready, and one leads: it."""
    for member in cluster.local.metadata:
        await asyncio.to_thread(member.wait_ready)
    # Whoever leads tells nobody: it is asked.
    while (leader := await asyncio.to_thread(cluster.leader)) is None:  # noqa: ASYNC110
        await asyncio.sleep(_LOOK_S)
    return leader


async def _again(appends: _Appends, since: int) -> float:
    while (found := appends.flows_again_ms(since)) is None:  # noqa: ASYNC110
        await asyncio.sleep(_LOOK_S)
    return found
