"""A compactor of a program without an event loop; see `CompactorJob` of
`client.bolt.compactors`.
"""

from collections.abc import Sequence
from typing import Self

from anabranch.client.bolt import compactors
from anabranch.client.bolt.compactors import LEASE_S, CopyOrder, CopyOrders
from anabranch.client.bolt.sync_scans import ScanPlan
from anabranch.client.driver.handover import Handover
from anabranch.core.bolt.protocol.compactors import (
    TAKEN_COPIES_MAX,
    Adopted,
    Compactor,
    NewCopy,
    SignedCopy,
)
from anabranch.core.types import Position


class CompactorJob:
    """It writes objects under an epoch of its own until it ends, or nobody renews it."""

    def __init__(self, loop: Handover, compactor: compactors.CompactorJob) -> None:
        self._loop, self._compactor = loop, compactor

    def __repr__(self) -> str:
        return repr(self._compactor)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    @property
    def description(self) -> Compactor:
        """As it was when it was registered, or renewed here."""
        return self._compactor.description

    def take(
        self,
        plan: ScanPlan,
        since: Position = 0,
        *,
        copies_max: int = TAKEN_COPIES_MAX,
        timeout: float | None = None,
    ) -> CopyOrders:
        """What is worth copying of the plan's log from this position on. Brokers leave the log
        alone for a while; Unavailable if another compactor copies it.
        """
        of, copies = plan.plan, copies_max
        taking = self._compactor.take(of, since, copies_max=copies, timeout=timeout)
        return self._loop.run(taking)

    def sign(self, copies: Sequence[NewCopy], *, timeout: float | None = None) -> list[SignedCopy]:
        """How each of these objects can be created, for some minutes: once, by a PUT of this
        content with these headers. NotFetchable where nobody else gets to the store.
        """
        return self._loop.run(self._compactor.sign(copies, timeout=timeout))

    def adopt(
        self, order: CopyOrder, sequence: int, size: int, *, timeout: float | None = None
    ) -> Adopted:
        """Have a broker read the object of this sequence back, which has so many bytes, and refer
        to it in place of the extents. In order of sequence: one that comes late is refused.
        """
        return self._loop.run(self._compactor.adopt(order, sequence, size, timeout=timeout))

    def renew(self, lease: float = LEASE_S, *, timeout: float | None = None) -> Compactor:
        """Let it live for this many seconds from now on. CompactorEnded if it does no more."""
        return self._loop.run(self._compactor.renew(lease, timeout=timeout))

    def end(self, *, timeout: float | None = None) -> None:
        """The job is over: what it wrote and nobody adopted is deleted in due course."""
        self._loop.run(self._compactor.end(timeout=timeout))
