"""Appends on their way, and the promise of a position that is withheld."""
# ruff: noqa: ASYNC109  # a timeout here travels with the request: its outcome is told, not cut off

from anabranch.client.bolt.link import Link
from anabranch.client.bolt.producer import Pledge
from anabranch.client.driver.pending import Pending
from anabranch.client.session.records import Appended
from anabranch.core.bolt.protocol import messages
from anabranch.core.bolt.protocol.commands import Receipt as Promise
from anabranch.core.bolt.protocol.messages import Redeem
from anabranch.core.bolt.protocol.queries import Settled
from anabranch.core.types import Position


class Receipt:
    """The promise of a position that is withheld until the promotable forks of its log are
    decided.
    """

    def __init__(self, link: Link, promise: Promise) -> None:
        self._link = link
        self._promise = promise

    @property
    def promise(self) -> Promise:
        return self._promise

    def __str__(self) -> str:
        """What to keep where the receipt must outlive this program: `Service.receipt` takes it."""
        return self.promise.text

    def __repr__(self) -> str:
        return f"<receipt {self.promise.text}>"

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


class Appending(Pending[Pledge, Appended[Receipt]]):
    """An append on its way; await it, or look whether it is done."""

    __slots__ = ()


def placed(link: Link, outcome: messages.Appended, index: int) -> Appended[Receipt]:
    """Where one record of a batch is."""
    if outcome.position is not None:
        return Appended(outcome.position + index, None)
    promise = outcome.receipt
    assert promise is not None, "an append has a position or a receipt"
    provisional = promise.provisional + index
    return Appended(None, Receipt(link, Promise(promise.log, promise.generation, provisional)))
