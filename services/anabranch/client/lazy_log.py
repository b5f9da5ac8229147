"""A Bolt log with a lazy front, as an asyncio program holds it."""
# ruff: noqa: ASYNC109  # a timeout here travels with the request: its outcome is told, not cut off

import asyncio
from collections.abc import Coroutine, Iterable, Sequence
from typing import Any, TypeVar, cast

from anabranch.client.bolt import receipts
from anabranch.client.bolt.link import Link
from anabranch.client.bolt.log import Log
from anabranch.client.bolt.receipts import Appending
from anabranch.client.catalogue import Catalogue
from anabranch.client.deployments import Deployments
from anabranch.client.driver import link as driver
from anabranch.client.erwin.link import Link as FrontLink
from anabranch.client.erwin.log import SequencedLog
from anabranch.client.erwin.pledge import Pledge
from anabranch.client.erwin.receipts import Receipt as FrontReceipt
from anabranch.client.session.records import Appended, Headers, Time
from anabranch.client.session.settings import Settings
from anabranch.core.bolt.protocol.commands import Description, EngineSettings
from anabranch.core.bolt.protocol.commands import Receipt as Promise
from anabranch.core.bolt.protocol.fronts import FindReceipt
from anabranch.core.bolt.protocol.queries import Settled
from anabranch.core.errors import (
    DeadlineExceeded,
    OutcomeUnknown,
    PositionForgotten,
    PositionPending,
    Retry,
)
from anabranch.core.records.record import Record
from anabranch.core.sequencing.protocol.messages import SequencingStatus
from anabranch.core.types import LogId

_LOOK_S = 1.0
"""How often whoever waits for the front looks whether there still is one."""

A = TypeVar("A")


class Receipt(receipts.Receipt):
    """An append that is durable, and gets its position when the log has committed it: after all
    that were acknowledged before it was made, and before all that are made from now on.
    """

    def __init__(self, link: Link, log: "LazyLog", front: FrontReceipt) -> None:
        self._link = link
        self._log = log
        self._front = front
        self._found: Promise | None = None

    def __repr__(self) -> str:
        if self._found is not None:
            return super().__repr__()
        return f"<receipt of {self._log.name}: position not bound yet>"

    @property
    def promise(self) -> Promise:
        """PositionPending, a ReceiptPending, until `position` or `redeem` has found the record in
        the log.
        """
        if self._found is None:
            raise PositionPending(self._log.name)
        return self._found

    async def redeem(self, *, timeout: float | None = None) -> Settled:
        """Wait until the log has committed the record, and until its position is final; with the
        name of the log that has it now.

        OutcomeUnknown if the front's durability is `memory` and all of its replicas lost theirs.
        """
        await self.committed(timeout=timeout)
        return await super().redeem(timeout=timeout)

    async def committed(self, *, timeout: float | None = None) -> None:
        """Wait until the log has committed the record, whether its position is withheld or not.

        PositionForgotten if the log's appends were made direct before anybody has asked for it;
        OutcomeUnknown if the front's durability was `memory`.
        """
        if self._found is None:
            offset = await self._log.of_front(self._front.position(timeout=timeout))
            message = FindReceipt(self._log.id, offset)
            try:
                self._found = await self._log.ask(message, Promise, "find a receipt of", timeout)
            except DeadlineExceeded as late:
                raise PositionPending(self._log.name) from late.__cause__


class FrontAppends(SequencedLog):
    """The appends of one log through its front. Positions here are the front's offsets."""

    def __init__(self, link: FrontLink, log: Log) -> None:
        super().__init__(link)
        self._log = log

    @property
    def id(self) -> LogId:
        return self._log.id

    @property
    def name(self) -> str:
        return self._log.name

    @property
    def description(self) -> Description:
        return self._log.description


class _Target:
    """The log, as its appends on their way see it."""

    def __init__(self, log: "LazyLog") -> None:
        self.link: driver.Link[Any, Any] = log.append_link
        self.placed = log.placed


class LazyLog(Log):
    """A Bolt log whose appends are acknowledged in one round trip, before they are in the log.

    An append has a receipt in place of a position; `receipt.position()` waits for it. Reads, forks,
    promotions and cursors are those of any Bolt log.
    """

    def __init__(self, link: Link, description: Description, front: FrontLink) -> None:
        super().__init__(link, description)
        self._appends = FrontAppends(front, self)
        self._front_ended = False
        self._looked_s = 0.0
        """When it was asked last whether the front has ended, by the loop's clock."""

    @property
    def append_link(self) -> driver.Link[Any, Any]:
        return self._appends.link

    async def append(
        self,
        value: bytes | None,
        *,
        key: bytes | None = None,
        headers: Headers = (),
        timestamp: Time | None = None,
        request_id: str | None = None,
        timeout: float | None = None,
    ) -> Appended[receipts.Receipt]:
        """Append one record: all replicas of the front hold it on return, and it has a receipt.

        Whatever is appended after this has returned comes later in the log. `request_id`: repeated
        with the same id, also by another program, the append isn't done again, for an hour.
        """
        done = await self._appends.append(
            value,
            key=key,
            headers=headers,
            timestamp=timestamp,
            request_id=request_id,
            timeout=timeout,
        )
        return self._held(done.receipt)

    def append_nowait(
        self,
        value: bytes | None,
        *,
        key: bytes | None = None,
        headers: Headers = (),
        timestamp: Time | None = None,
        timeout: float | None = None,
    ) -> Appending:
        """Append in the background, in order; Overloaded if too much is pending already.

        An error of one that is never awaited is raised by the service's `flush` or `close`.
        """
        pledge, index = self._appends.begun(
            value, key=key, headers=headers, timestamp=timestamp, timeout=timeout
        )
        return Appending(cast("Any", _Target(self)), cast("Any", pledge), index)

    async def append_many(
        self,
        values: Iterable[bytes | Record],
        *,
        together: bool = False,
        request_id: str | None = None,
        timeout: float | None = None,
    ) -> list[Appended[receipts.Receipt]]:
        """Append all in order, waiting for room where too much is pending; cheaper than one by one.

        Raises the first error: then some may have been appended, and others not. `together`: all
        are one batch, of which all or none is appended; BatchTooLarge if that is more than a batch
        takes. So it is with a `request_id`, as of `append`.
        """
        done = await self._appends.append_many(
            values, together=together, request_id=request_id, timeout=timeout
        )
        return [self._held(each.receipt) for each in done]

    async def status(self, *, timeout: float | None = None) -> SequencingStatus:
        """What the front's leader sees: its view, how much the log has yet to commit, how much room
        the ring has and how long that lasts. Positions in it are the front's offsets.
        """
        return await self._appends.status(timeout=timeout)

    def placed(self, pledge: Any, index: int) -> Appended[receipts.Receipt]:
        """What the append of this record of an acknowledged batch gives."""
        assert isinstance(pledge, Pledge)
        return self._held(self._appends.placed(pledge, index).receipt)

    async def of_front(self, asked: Coroutine[Any, Any, A]) -> A:
        """What the front answers about an append. When it has ended, nobody answers any more."""
        answer = asyncio.ensure_future(asked)
        try:
            while not (await asyncio.wait((answer,), timeout=_LOOK_S))[0]:
                await self._check_front()
        finally:
            answer.cancel()
        if answer.exception() is not None:
            await self._check_front()
        return answer.result()

    async def _check_front(self) -> None:
        """Raises what can be said of an append whose front has ended."""
        now_s = asyncio.get_running_loop().time()
        if not self._front_ended and now_s - self._looked_s >= _LOOK_S:
            self._looked_s = now_s
            try:
                self._front_ended = (await self.describe(timeout=_LOOK_S)).front is None
            except Retry:
                return
        if not self._front_ended:
            return
        front = self.description.front
        if front is not None and front.durability == "memory":
            what, reason = "an append", "it was acknowledged by a front in memory that has ended"
            raise OutcomeUnknown(what, reason, "look at the log before you repeat it")
        raise PositionForgotten(self.name)

    async def pledge(self, made: Record, timeout: float | None = None) -> Any:
        """Have a record taken once there is room: it is the last of this pledge."""
        return await self._appends.pledge(made, timeout)

    async def _once(
        self, made: Sequence[Record], request_id: str, timeout: float | None
    ) -> list[Appended[receipts.Receipt]]:
        return await self.append_many(made, request_id=request_id, timeout=timeout)

    def _held(self, receipt: FrontReceipt | None) -> Appended[receipts.Receipt]:
        assert receipt is not None, "an append without a position has a receipt"
        return Appended(None, Receipt(self.link, self, receipt))


class LazyLogs:
    """The lazy logs of one service, with one connection to each front."""

    def __init__(self, catalogue: Catalogue, link: Link) -> None:
        self._link = link
        self._fronts = Deployments(catalogue, self._dialled)

    async def opened(self, description: Description, timeout_s: float) -> LazyLog:
        """Once its front's processes are known."""
        found, _, front = await self._fronts.reach(description, timeout_s)
        return LazyLog(self._link, found, front)

    @property
    def links(self) -> list[FrontLink]:
        return self._fronts.links

    def _dialled(self, front: EngineSettings) -> FrontLink:
        settings: Settings = self._link.session.settings
        return FrontLink(self._link.endpoint, settings, front.cluster, front.addresses)
