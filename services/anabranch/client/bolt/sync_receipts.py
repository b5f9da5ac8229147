"""The promise of a position, as a program without an event loop holds it."""

from anabranch.client.bolt import receipts
from anabranch.client.driver.handover import Handover
from anabranch.client.session.records import Appended
from anabranch.core.bolt.protocol.receipts import Receipt as Promise
from anabranch.core.types import Position


class Receipt:
    """The promise of a position that is withheld until the promotable forks of its log are
    decided.
    """

    def __init__(self, loop: Handover, receipt: receipts.Receipt) -> None:
        self._loop, self._receipt = loop, receipt

    @property
    def promise(self) -> Promise:
        return self._receipt.promise

    def __str__(self) -> str:
        """What to keep where the receipt must outlive this program: `Service.receipt` takes it."""
        return self.promise.text

    def __repr__(self) -> str:
        return repr(self._receipt)

    def position(self, *, timeout: float | None = None) -> Position:
        """Wait for the decision up to `timeout`; ReceiptPending if there is none by then."""
        return self._loop.run(self._receipt.position(timeout=timeout))


def waiting(loop: Handover, done: Appended[receipts.Receipt]) -> Appended[Receipt]:
    """The same for a program without an event loop."""
    position, receipt = done
    return Appended(position, None if receipt is None else Receipt(loop, receipt))
