"""What an append to an Erwin log gives: a receipt, which knows the position once it is bound."""
# ruff: noqa: ASYNC109  # a timeout here travels with the request: its outcome is told, not cut off

from typing import Protocol

from anabranch.client.driver.pending import Pending
from anabranch.client.erwin.link import Link
from anabranch.client.erwin.pledge import Pledge
from anabranch.client.session.records import Appended
from anabranch.core.types import Position


class Appendable(Protocol):
    """The log that acknowledged an append."""

    @property
    def link(self) -> Link: ...

    @property
    def name(self) -> str: ...


class Receipt:
    """An append that is durable, and will get a position: after all that were acknowledged before
    it was made, and before all that are made from now on.

    It counts in this program only: keep its position, not its text.
    """

    __slots__ = ("_index", "_log", "_pledge")

    def __init__(self, log: Appendable, pledge: Pledge, index: int) -> None:
        self._log, self._pledge, self._index = log, pledge, index

    def __repr__(self) -> str:
        first = self._pledge.first
        where = "position not bound yet" if first is None else f"position {first + self._index}"
        return f"<receipt of {self._log.name}: {where}>"

    async def position(self, *, timeout: float | None = None) -> Position:
        """Wait until the position is final. PositionPending, a DeadlineExceeded, if it isn't in
        time: ask again.

        The log remembers the last 4,096 batches of this program; RequestForgotten for older ones.
        OutcomeUnknown if the log's durability is `memory` and all of its members lost theirs.
        """
        log = self._log
        return await log.link.position(self._pledge, log.name, timeout) + self._index


Acknowledged = Appended[Receipt]
"""Its position isn't bound yet."""


class Appending(Pending[Pledge, Acknowledged]):
    """An append on its way; await it, or look whether it is done."""

    __slots__ = ()
