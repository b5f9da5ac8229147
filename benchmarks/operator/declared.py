"""From `kubectl apply` to a Fork that is ready, and what the operator asks of the API server."""

import asyncio
import os
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from tests.kubernetes.audit import Request
from tests.operator.running import Operator, running, until_one_leads

from anabranch.client import aio
from benchmarks.cluster.cores import prefer
from benchmarks.operator.installation import LOG, PYTHON, Installation, User, installed, memory_mib
from benchmarks.report import Chart, Found, Line, Row, row
from benchmarks.server import cpu_s
from benchmarks.size import Size
from benchmarks.timing import now, percentile

PER_S = 10
_AT_ONCE_S = 60
_MIB = 128
_PER_S_MAX = 20
_SHOWN_S = 35
"""Numbers that have moved are shown within so long."""
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
    moving_cpu_s: float
    meanwhile: list[float]


def run(size: Size) -> Found:
    rounds = [_round(size) for _ in range(size.of(3, 1))]
    one_by_one, at_once, window_s = _sizes(size)
    forks, single = 1 + one_by_one + at_once, [each.single for each in rounds]
    meanwhile = [each.meanwhile for each in rounds]

    def per_s(requests: Callable[[_Round], list[Request]], *, itself: bool) -> list[float]:
        return [
            sum((sent.verb in _BY_ITSELF) is itself for sent in requests(each)) / window_s
            for each in rounds
        ]

    also = "watches begun anew, and lists that verify them"
    all_s, cores = [r.all_s for r in rounds], [r.moving_cpu_s / window_s for r in rounds]
    has, most = [r.has_mib for r in rounds], [r.most_mib for r in rounds]
    still, moving = per_s(_still, itself=False), per_s(_moving, itself=False)
    rows = [
        row(f"{at_once:,} Forks at once, until all are Ready", all_s, "s", at_most=_AT_ONCE_S),
        row("memory of the operator then", has, "MiB", at_most=_MIB),
        row("the most that it had", most, "MiB"),
        *_latencies(f"beside them {PER_S} Forks/s", single),
        row(f"requests in {window_s} s without change", still, "requests/s", at_most=0),
        row(also, per_s(_still, itself=True), "requests/s"),
        row(f"as the tails of {forks:,} Forks move", moving, "requests/s", at_most=_PER_S_MAX),
        row(also, per_s(_moving, itself=True), "requests/s"),
        row("the operator's processor meanwhile", cores, "cores"),
        *_latencies(f"as they move, {PER_S} Forks/s", meanwhile),
    ]
    charts = [
        _chart("one by one", single),
        _chart("one by one, as all tails move", meanwhile),
        _chart("all at once", [sorted(each.waits) for each in rounds]),
    ]
    return Found(rows, charts, [*_NOTES, _environment()])


def _still(of: _Round) -> list[Request]:
    return of.still


def _moving(of: _Round) -> list[Request]:
    return of.moving


def _latencies(what: str, rounds: list[list[float]]) -> Iterator[Row]:
    for of, bar in ((50, 300), (99, 2_000)):
        found = [percentile(each, of) for each in rounds]
        yield row(f"{what}: apply to Ready, p{of}", found, "ms", at_most=bar)


_NOTES = [
    "the API server, etcd, the log service's processes and the client have the same two cores",
    "an apply is a server-side one over a connection that is open: kubectl's own start isn't in it",
    "the operator's requests about its Lease are left out",
]


def _environment() -> str:
    if os.environ.get(PYTHON):
        return "the operator has the packages of its image"
    return "the operator has a developer's packages: kopf loads the official client, some 17 MiB"


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
    pid = operator.process.pid
    async with installation.user() as user, asyncio.timeout(_ENDS_S):
        await user.declare_log()
        await user.fork("first")
        began = now()
        waits = await asyncio.gather(*(user.fork(f"many-{n}") for n in range(at_once)))
        all_s = (now() - began) / 1e9
        has, most = memory_mib(pid, "VmRSS"), memory_mib(pid, "VmHWM")
        single = await _one_by_one(user, "single", one_by_one)
        quiet_s = size.of(_SHOWN_S, 1)
        while _acts(await _requests(installation, operator, quiet_s)):
            pass
        still = await _requests(installation, operator, window_s)
        async with _appending(installation):
            busy_s = cpu_s(pid)
            moving = await _requests(installation, operator, window_s)
            busy_s = cpu_s(pid) - busy_s
            meanwhile = await _one_by_one(user, "meanwhile", one_by_one // 3)
    return _Round(all_s, waits, has, most, single, still, moving, busy_s, meanwhile)


async def _one_by_one(user: User, name: str, count: int) -> list[float]:
    took: list[asyncio.Task[float]] = []
    for number in range(count):
        took.append(asyncio.create_task(user.fork(f"{name}-{number}")))
        await asyncio.sleep(1 / PER_S)
    return sorted(await asyncio.gather(*took))


def _acts(requests: list[Request]) -> bool:
    return any(each.verb not in _BY_ITSELF for each in requests)


@asynccontextmanager
async def _appending(installation: Installation) -> AsyncGenerator[None]:
    """What is appended to their log moves all of its forks."""
    async with aio.connect(installation.cluster.url, timeout=60) as service:
        log = await service.log(LOG)

        async def append() -> None:
            while True:
                await log.append(b"moves every fork's tail")
                await asyncio.sleep(1 / PER_S)

        appending = asyncio.create_task(append())
        try:
            yield
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
