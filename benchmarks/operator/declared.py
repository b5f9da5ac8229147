"""From `kubectl apply` to a Fork that is ready, and what the operator asks of the API server."""

import asyncio
from itertools import pairwise

from tests.operator.running import Operator, running, until_one_leads

from anabranch.client import aio
from benchmarks.operator.installation import LOG, Installation, installed, memory_mib
from benchmarks.report import Chart, Found, Line, row
from benchmarks.size import Size
from benchmarks.timing import now, percentile

PER_S = 10
_AT_ONCE_S = 60
_MIB = 128
_PER_S_MAX = 20
_ENDS_S = 600


def run(size: Size) -> Found:
    with installed(size.of(3, 2)) as installation:
        operator = installation.operator()
        with running(operator):
            until_one_leads(operator)
            return asyncio.run(_measured(installation, operator, size))


async def _measured(installation: Installation, operator: Operator, size: Size) -> Found:
    one_by_one, at_once, window_s = size.of((600, 1_000, 60), (10, 20, 3))
    async with installation.user() as user, asyncio.timeout(_ENDS_S):
        await user.declare_log()
        await user.fork("first")
        began = now()
        waits = await asyncio.gather(*(user.fork(f"many-{n}") for n in range(at_once)))
        all_s = (now() - began) / 1e9
        has = memory_mib(operator.process.pid, "VmRSS")
        most = memory_mib(operator.process.pid, "VmHWM")
        took: list[asyncio.Task[float]] = []
        for number in range(one_by_one):
            took.append(asyncio.create_task(user.fork(f"single-{number}")))
            await asyncio.sleep(1 / PER_S)
        single = sorted(await asyncio.gather(*took))
        still = await _asked(installation, operator, window_s)
        steady = await _asked_while_appending(installation, operator, window_s)
    more = f"beside them, {PER_S} Forks/s: apply to Ready"
    forks = 1 + one_by_one + at_once
    rows = [
        row(f"{at_once:,} Forks at once, until all are Ready", all_s, "s", at_most=_AT_ONCE_S),
        row("memory of the operator then", has, "MiB", at_most=_MIB),
        row("the most that it had", most, "MiB"),
        row(f"{more}, p50", percentile(single, 50), "ms", at_most=300),
        row(f"{more}, p99", percentile(single, 99), "ms", at_most=2_000),
        row("requests while nothing changes, the Lease aside", still, "requests/s", at_most=0),
        row(f"while the tails of {forks:,} Forks move", steady, "requests/s", at_most=_PER_S_MAX),
    ]
    return Found(rows, [_chart("one by one", single), _chart("all at once", sorted(waits))], _NOTES)


_NOTES = [
    "the API server, etcd, the log service's processes and the client have the same two cores",
    "an apply is a server-side one over a connection that is open: kubectl's own start isn't in it",
]


async def _asked(installation: Installation, operator: Operator, window_s: float) -> float:
    """Requests in a second, once it has become quiet."""
    while await _requests(installation, operator, 5):
        pass
    return await _requests(installation, operator, window_s) / window_s


async def _asked_while_appending(
    installation: Installation, operator: Operator, window_s: float
) -> float:
    async with aio.connect(installation.cluster.url, timeout=60) as service:
        log = await service.log(LOG)

        async def append() -> None:
            while True:
                await log.append(b"moves every fork's tail")
                await asyncio.sleep(1 / PER_S)

        appending = asyncio.create_task(append())
        try:
            return await _requests(installation, operator, window_s) / window_s
        finally:
            appending.cancel()


async def _requests(installation: Installation, operator: Operator, window_s: float) -> int:
    api = installation.api
    since = await asyncio.to_thread(api.mark)
    await asyncio.sleep(window_s)
    asked = await asyncio.to_thread(api.requests, since, operator.user)
    return sum(each.resource != "leases" for each in asked)


def _chart(label: str, ordered: list[float]) -> Chart:
    points = [(of, percentile(ordered, of)) for of in range(0, 101, 5)]
    assert all(a[1] <= b[1] for a, b in pairwise(points))
    lines = [Line(label, list(points))]
    return Chart(title=f"Apply to Ready, {label}", x="percentile", y="ms", lines=lines)
