"""From `kubectl apply` to a Fork that is ready, and what the operator asks of the API server."""

import asyncio
import os
from collections.abc import Callable
from dataclasses import dataclass

from tests.kubernetes.audit import Request
from tests.operator.running import Operator, running, until_one_leads

from anabranch.client import aio
from benchmarks.cluster.cores import prefer
from benchmarks.operator.installation import LOG, PYTHON, Installation, installed, memory_mib
from benchmarks.report import Chart, Found, Line, row
from benchmarks.size import Size
from benchmarks.timing import now, percentile

PER_S = 10
_AT_ONCE_S = 60
_MIB = 128
_PER_S_MAX = 20
_ENDS_S = 1_200
_BY_ITSELF = ("list", "watch")
"""How watches are begun anew, and compared with lists, each some minutes."""


@dataclass(frozen=True, slots=True)
class _Round:
    """Of one installation."""

    all_s: float
    waits: list[float]
    has_mib: float
    most_mib: float
    single: list[float]
    still: list[Request]
    moving: list[Request]


def run(size: Size) -> Found:
    rounds = [_round(size) for _ in range(size.of(3, 1))]
    one_by_one, at_once, window_s = _sizes(size)
    forks = 1 + one_by_one + at_once

    def per_s(requests: Callable[[_Round], list[Request]], *, itself: bool) -> list[float]:
        return [
            sum((sent.verb in _BY_ITSELF) is itself for sent in requests(each)) / window_s
            for each in rounds
        ]

    single = [each.single for each in rounds]
    also = "watches begun anew, and lists that verify them"
    rows = [
        row(
            f"{at_once:,} Forks at once, until all are Ready",
            [each.all_s for each in rounds],
            "s",
            at_most=_AT_ONCE_S,
        ),
        row("memory of the operator then", [r.has_mib for r in rounds], "MiB", at_most=_MIB),
        row("the most that it had", [each.most_mib for each in rounds], "MiB"),
        row(
            f"beside them {PER_S} Forks/s: apply to Ready, p50",
            [percentile(each, 50) for each in single],
            "ms",
            at_most=300,
        ),
        row(
            f"beside them {PER_S} Forks/s: apply to Ready, p99",
            [percentile(each, 99) for each in single],
            "ms",
            at_most=2_000,
        ),
        row(
            f"requests in {window_s} s without change",
            per_s(lambda r: r.still, itself=False),
            "requests/s",
            at_most=0,
        ),
        row(also, per_s(lambda r: r.still, itself=True), "requests/s"),
        row(
            f"requests while the tails of {forks:,} Forks move",
            per_s(lambda r: r.moving, itself=False),
            "requests/s",
            at_most=_PER_S_MAX,
        ),
        row(also, per_s(lambda r: r.moving, itself=True), "requests/s"),
    ]
    charts = [
        _chart("one by one", single),
        _chart("all at once", [sorted(each.waits) for each in rounds]),
    ]
    return Found(rows, charts, [*_NOTES, _environment()])


_NOTES = [
    "the API server, etcd, the log service's processes and the client have the same two cores",
    "an apply is a server-side one over a connection that is open: kubectl's own start isn't in it",
    "the operator's requests about its Lease are left out",
]


def _environment() -> str:
    if os.environ.get(PYTHON):
        return "the operator has the packages of its image"
    return "the operator has a developer's packages: kopf loads the official client, 30 MiB or more"


def _sizes(size: Size) -> tuple[int, int, int]:
    return size.of((600, 1_000, 120), (10, 20, 3))


def _round(size: Size) -> _Round:
    with installed(size.of(3, 2)) as installation:
        operator = installation.operator()
        with running(operator):
            prefer(operator.process.pid)
            until_one_leads(operator)
            return asyncio.run(_measured(installation, operator, size))


async def _measured(installation: Installation, operator: Operator, size: Size) -> _Round:
    one_by_one, at_once, window_s = _sizes(size)
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
        moving = await _asked_while_appending(installation, operator, window_s)
    return _Round(all_s, waits, has, most, single, still, moving)


async def _asked(installation: Installation, operator: Operator, window_s: float) -> list[Request]:
    """Once it has become quiet."""
    while any(each.verb not in _BY_ITSELF for each in await _requests(installation, operator, 5)):
        pass
    return await _requests(installation, operator, window_s)


async def _asked_while_appending(
    installation: Installation, operator: Operator, window_s: float
) -> list[Request]:
    async with aio.connect(installation.cluster.url, timeout=60) as service:
        log = await service.log(LOG)

        async def append() -> None:
            while True:
                await log.append(b"moves every fork's tail")
                await asyncio.sleep(1 / PER_S)

        appending = asyncio.create_task(append())
        try:
            return await _requests(installation, operator, window_s)
        finally:
            appending.cancel()


async def _requests(
    installation: Installation, operator: Operator, window_s: float
) -> list[Request]:
    api = installation.api
    since = await asyncio.to_thread(api.mark)
    await asyncio.sleep(window_s)
    asked = await asyncio.to_thread(api.requests, since, operator.user)
    return [each for each in asked if each.resource != "leases"]


def _chart(label: str, rounds: list[list[float]]) -> Chart:
    """`rounds`: each in order."""
    lines = [
        Line(f"round {number}", [(of, percentile(each, of)) for of in range(0, 101, 5)])
        for number, each in enumerate(rounds, start=1)
    ]
    return Chart(title=f"Apply to Ready, {label}", x="percentile", y="ms", lines=lines)
