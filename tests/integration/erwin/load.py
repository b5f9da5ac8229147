"""Clients of an Erwin log, and what they saw, for the judge in `core/history/lazy.py`."""

import asyncio
from contextlib import AsyncExitStack
from itertools import count
from time import monotonic_ns

from tests.integration.erwin.deployment import PATIENCE_S, Log, connected

from anabranch.apps.processes.local_log import LocalLog
from anabranch.core.errors import AnabranchError
from anabranch.core.history.calls import Verdict
from anabranch.core.history.lazy import (
    LazyAppend,
    LazyCall,
    LazyHistory,
    Redemption,
    StableRead,
    TailCheck,
    judge_lazy,
)

APPENDERS = 3
_SHORT_S = 20.0
_BETWEEN_APPENDS_S, _BETWEEN_READS_S = 0.01, 0.03
"""Clients rest between calls: what they do while a test waits for a process proves no more the more
it is, and keeps the process from its work.
"""


class Load:
    """Until `stop`, clients append, redeem receipts, ask for the tail and read what is stable."""

    def __init__(self, local: LocalLog) -> None:
        self.history = LazyHistory(calls=[], lost=set())
        self.acknowledged = 0
        self.read = 0
        """Records that were read while the load ran."""
        self._local = local
        self._stop = asyncio.Event()
        self._clients = count(1)
        self._records = count(1)
        self._tasks: list[asyncio.Task[None]] = []
        self._stack = AsyncExitStack()

    async def start(self) -> None:
        for _ in range(APPENDERS):
            self._run(self._append(await self._log(), next(self._clients)))
        self._run(self._ask_tails(await self._log(), next(self._clients)))
        self._run(self._read(await self._log(), next(self._clients)))

    async def go_on(self, records: int = 100) -> None:
        """Return when so many more are acknowledged, and read."""
        for what in ("acknowledged", "read"):
            target = getattr(self, what) + records
            async with asyncio.timeout(PATIENCE_S):
                while getattr(self, what) < target:
                    self._look()
                    await asyncio.sleep(0.01)

    async def reads_go_on(self, portions: int = 20) -> None:
        """Return when stable positions were read so many times more, also where nobody appends."""
        target = self._portions + portions
        async with asyncio.timeout(PATIENCE_S):
            while self._portions < target:
                self._look()
                await asyncio.sleep(0.01)

    async def finish(self, log: Log) -> None:
        """All is over, and was as it should."""
        self._stop.set()
        await asyncio.gather(*self._tasks)
        await self._stack.aclose()
        call = StableRead(client=0, invoked=monotonic_ns(), start=0, upto=0)
        async for each in log.read(0, timeout=PATIENCE_S):
            call.positions.append(each.position)
            call.records.append(_number(each.value))
        call.upto = await log.tail(timeout=PATIENCE_S)
        call.returned, call.verdict = monotonic_ns(), Verdict.OK
        self.history.final = call
        assert judge_lazy(self.history) == []
        assert self.acknowledged > 0

    _portions = 0

    def _run(self, work: "asyncio.Future[None] | object") -> None:
        self._tasks.append(asyncio.ensure_future(work))  # type: ignore[arg-type]

    def _look(self) -> None:
        for task in self._tasks:
            if task.done():
                task.result()

    async def _log(self) -> Log:
        return await self._stack.enter_async_context(connected(self._local))

    async def _append(self, log: Log, client: int) -> None:
        while not self._stop.is_set():
            await asyncio.sleep(_BETWEEN_APPENDS_S)
            number = next(self._records)
            call = LazyAppend(client=client, invoked=monotonic_ns(), records=[number])
            self.history.calls.append(call)
            try:
                appended = await log.append(b"%d" % number, timeout=_SHORT_S)
            except AnabranchError:
                continue  # it may be in the log or not
            _done(call)
            self.acknowledged += 1
            if number % 10 == 0 and appended.receipt is not None:
                redeemed = Redemption(client=client, invoked=monotonic_ns(), record=number)
                self.history.calls.append(redeemed)
                try:
                    redeemed.position = await appended.receipt.position(timeout=_SHORT_S)
                except AnabranchError:
                    continue
                _done(redeemed)

    async def _ask_tails(self, log: Log, client: int) -> None:
        while not self._stop.is_set():
            call = TailCheck(client=client, invoked=monotonic_ns())
            self.history.calls.append(call)
            try:
                call.tail = await log.tail(timeout=_SHORT_S)
            except AnabranchError:
                continue
            _done(call)
            await asyncio.sleep(_BETWEEN_READS_S)

    async def _read(self, log: Log, client: int) -> None:
        """What is there already, again and again, and then what is new."""
        start = 0
        while not self._stop.is_set():
            call = StableRead(client=client, invoked=monotonic_ns(), start=start, upto=start)
            async for each in log.read(start, 200, stable_only=True, timeout=PATIENCE_S):
                call.positions.append(each.position)
                call.records.append(_number(each.value))
                call.upto = each.position + 1
            _done(call)
            self.history.calls.append(call)
            self.read += len(call.positions)
            self._portions += 1
            # At the end it begins anew: what was stable once is answered at any time.
            start = call.upto if call.positions else 0
            await asyncio.sleep(_BETWEEN_READS_S)


def _number(value: bytes | None) -> int:
    assert value is not None
    return int(value)


def _done(call: LazyCall) -> None:
    call.returned, call.verdict = monotonic_ns(), Verdict.OK
