"""A compactor: what a job needs to copy small extents of logs into larger objects (decision 83)."""
# ruff: noqa: ASYNC109  # a timeout here travels with the request: its outcome is told, not cut off

import struct
from collections.abc import Sequence
from types import TracebackType
from typing import Self, TypeVar

import msgspec

from anabranch.client.bolt.link import Link
from anabranch.client.bolt.scans import PlannedSlice, ScanPlan
from anabranch.client.session import arguments
from anabranch.core.bolt.protocol.commands import Done
from anabranch.core.bolt.protocol.compaction import Copied
from anabranch.core.bolt.protocol.compactors import (
    SIGNED_COPIES_MAX,
    TAKEN_COPIES_MAX,
    AdoptCopy,
    Adopted,
    Compactor,
    EndCompactor,
    NewCopy,
    RegisterCompactor,
    RenewCompactor,
    SignCopies,
    SignedCopies,
    SignedCopy,
    TakeCopies,
    TakenCopies,
)
from anabranch.core.bolt.protocol.messages import ClientMessage
from anabranch.core.types import LogId, Milliseconds, Position

LEASE_S = 120.0
"""How long a compactor lives that nobody renews."""

A = TypeVar("A")


class CopyOrder(msgspec.Struct, frozen=True, array_like=True):
    """Extents of a log to be copied into one object. It can be sent to other processes."""

    log: LogId
    extents: list[Copied]
    joined: list[int]
    """So many extents in turn become one."""
    seals: list[int]

    @property
    def size(self) -> int:
        """Bytes of the extents."""
        return sum(each.length for each in self.extents)

    @property
    def slices(self) -> list[PlannedSlice]:
        """What has to be fetched, as of a page of the plan."""
        return [
            PlannedSlice(
                each.first,
                each.count,
                each.object,
                each.offset,
                each.length,
                0,
                self.log,
                each.first,
                seal,
            )
            for each, seal in zip(self.extents, self.seals, strict=True)
        ]


class CopyOrders(msgspec.Struct, frozen=True):
    """Copies to make, in order of position."""

    orders: list[CopyOrder]
    next: Position
    """Where the next answer begins."""
    more: bool
    """False: nothing from `next` on is worth copying now."""


class CompactorJob:
    """It writes objects under an epoch of its own until it ends, or nobody renews it.

    Any process may that may run the pool and has the description:
    `service.running_compactor(description)` is the same compactor there.
    """

    def __init__(self, link: Link, description: Compactor) -> None:
        self.link = link
        self.description = description
        """As it was when it was registered, or renewed here."""

    def __repr__(self) -> str:
        return f"<compactor {self.description.id} of {self.description.name}>"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.end()

    async def take(
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
        of = plan.description
        message = TakeCopies(
            self.description.id,
            of.log,
            of.id,
            arguments.position("take copies", since),
            copies_max,
        )
        taken = await self._ask(message, TakenCopies, "take copies for", timeout)
        seals = iter(struct.unpack(f">{len(taken.seals) // 8}Q", taken.seals))
        orders = [
            CopyOrder(of.log, each.extents, each.joined, [next(seals) for _ in each.extents])
            for each in taken.copies
        ]
        return CopyOrders(orders, taken.next, taken.more)

    async def sign(
        self, copies: Sequence[NewCopy], *, timeout: float | None = None
    ) -> list[SignedCopy]:
        """How each of these objects can be created, for some minutes: once, by a PUT of this
        content with these headers. NotFetchable where nobody else gets to the store.
        """
        found: list[SignedCopy] = []
        for first in range(0, len(copies), SIGNED_COPIES_MAX):
            message = SignCopies(
                self.description.id, list(copies[first : first + SIGNED_COPIES_MAX])
            )
            found += (await self._ask(message, SignedCopies, "sign copies of", timeout)).copies
        return found

    async def adopt(
        self, order: CopyOrder, sequence: int, size: int, *, timeout: float | None = None
    ) -> Adopted:
        """Have a broker read the object of this sequence back, which has so many bytes, and refer
        to it in place of the extents. In order of sequence: one that comes late is refused.
        """
        message = AdoptCopy(
            self.description.id, order.log, sequence, size, order.extents, order.joined
        )
        return await self._ask(message, Adopted, "adopt a copy of", timeout)

    async def renew(self, lease: float = LEASE_S, *, timeout: float | None = None) -> Compactor:
        """Let it live for this many seconds from now on. CompactorEnded if it does no more."""
        message = RenewCompactor(self.description.id, milliseconds(lease))
        self.description = await self._ask(message, Compactor, "renew", timeout)
        return self.description

    async def end(self, *, timeout: float | None = None) -> None:
        """The job is over: what it wrote and nobody adopted is deleted in due course."""
        await self._ask(EndCompactor(self.description.id), Done, "end", timeout)

    async def _ask(
        self, message: ClientMessage, answer: type[A], what: str, timeout: float | None
    ) -> A:
        link = self.link
        what = f"{what} compactor {self.description.id}"
        return await link.ask(message, answer, what, link.milliseconds(timeout))


def registering(link: Link, name: str, lease: float) -> RegisterCompactor:
    """The request for a compactor of this name."""
    return RegisterCompactor(name, milliseconds(lease), link.once())


def milliseconds(lease: float) -> Milliseconds:
    return round(arguments.seconds("the lease of a compactor", lease) * 1_000)
