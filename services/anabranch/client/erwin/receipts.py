"""What an append to an Erwin log gives: a receipt, which knows the position once it is bound."""
# ruff: noqa: ASYNC109  # a timeout here travels with the request: its outcome is told, not cut off

from anabranch.client.driver.pending import Pending
from anabranch.client.erwin.link import Link
from anabranch.client.erwin.pledge import Pledge
from anabranch.client.session.records import Appended
from anabranch.core.types import Position


class Receipt:
    """An append that is durable, and will get a position: after all that were acknowledged before
    it was made, and before all that are made from now on.
    """

    __slots__ = ("_index", "_link", "_pledge")

    def __init__(self, link: Link, pledge: Pledge, index: int) -> None:
        self._link, self._pledge, self._index = link, pledge, index

    async def position(self, *, timeout: float | None = None) -> Position:
        """Wait until the position is final. DeadlineExceeded if it isn't in time: ask again.

        The log remembers the last 4,096 batches of this program; RequestForgotten for older ones.
        OutcomeUnknown if the log's durability is `memory` and all of its members lost theirs.
        """
        return await self._link.position(self._pledge, timeout) + self._index


Acknowledged = Appended[Receipt]
"""Its position isn't bound yet."""


class Appending(Pending[Pledge, Acknowledged]):
    """An append on its way; await it, or look whether it is done."""

    __slots__ = ()
