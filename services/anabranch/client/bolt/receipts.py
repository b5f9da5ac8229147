"""Appends on their way, and the promise of a position that is withheld."""
# ruff: noqa: ASYNC109  # a timeout here travels with the request: its outcome is told, not cut off

from collections.abc import Generator

from anabranch.client.bolt.link import Link
from anabranch.client.bolt.producer import Pledge
from anabranch.client.session.records import Appended
from anabranch.core.bolt.protocol import messages
from anabranch.core.bolt.protocol.commands import Receipt as Promise
from anabranch.core.bolt.protocol.messages import Redeem
from anabranch.core.bolt.protocol.queries import Settled
from anabranch.core.errors import AnabranchError
from anabranch.core.types import Position


class Receipt:
    """The promise of a position that is withheld until the promotable forks of its log are
    decided.
    """

    def __init__(self, link: Link, promise: Promise) -> None:
        self._link = link
        self.promise = promise

    def __str__(self) -> str:
        """What to keep where the receipt must outlive this program: `Service.receipt` takes it."""
        return self.promise.text

    async def position(self, *, timeout: float | None = None) -> Position:
        """Wait for the decision up to `timeout`; ReceiptPending if there is none by then."""
        return (await self.redeem(timeout=timeout)).position

    async def redeem(self, *, timeout: float | None = None) -> Settled:
        """The same, with the name of the log that has the record now."""
        link = self._link
        wait_ms = link.milliseconds(timeout)
        message = Redeem(self.promise, wait_ms)
        limit_ms = link.session.settings.timeout_ms
        return await link.ask(message, Settled, "redeem a receipt", limit_ms, wait_ms)


class Appending:
    """An append on its way; await it, or look whether it is done."""

    __slots__ = ("_index", "_link", "_pledge")

    def __init__(self, link: Link, pledge: Pledge, index: int) -> None:
        self._link, self._pledge, self._index = link, pledge, index

    def __await__(self) -> Generator[object, None, Appended[Receipt]]:
        if self._pledge.outcome is None:
            yield from self._link.settled(self._pledge).__await__()
        return self.result()

    @property
    def done(self) -> bool:
        return self._pledge.outcome is not None

    def result(self) -> Appended[Receipt]:
        """Of one that is done; raises what became of it, if it wasn't appended."""
        return appended(self._link, self._pledge, self._index)


def appended(link: Link, pledge: Pledge, index: int) -> Appended[Receipt]:
    """What became of one record of this pledge."""
    outcome = pledge.outcome
    assert outcome is not None, "only one that is done has a result"
    if isinstance(outcome, AnabranchError):
        link.heeded(outcome)
        raise outcome
    return placed(link, outcome, index)


def placed(link: Link, outcome: messages.Appended, index: int) -> Appended[Receipt]:
    """Where one record of a batch is."""
    if outcome.position is not None:
        return Appended(outcome.position + index, None)
    promise = outcome.receipt
    assert promise is not None, "an append has a position or a receipt"
    provisional = promise.provisional + index
    return Appended(None, Receipt(link, Promise(promise.log, promise.generation, provisional)))
