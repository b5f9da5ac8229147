"""A planned scan of a program without an event loop; see `ScanPlan` of `client.bolt.scans`."""

from collections.abc import Iterator, Sequence
from typing import Self

from anabranch.client.bolt import scans
from anabranch.client.bolt.scans import LEASE_S, PAGE_SLICES, PlannedSlice
from anabranch.client.driver.handover import Handover, each
from anabranch.core.bolt.protocol.scans import Plan, SignedRange


class ScanPlan:
    """What it names stays in the store until the plan ends, whatever becomes of the log."""

    def __init__(self, loop: Handover, plan: scans.ScanPlan) -> None:
        self._loop, self._plan = loop, plan

    def __repr__(self) -> str:
        return repr(self._plan)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    @property
    def plan(self) -> scans.ScanPlan:
        """The same plan, for the event loop's side of this client."""
        return self._plan

    @property
    def description(self) -> Plan:
        """As it was when the scan was planned, or renewed here."""
        return self._plan.description

    def pages(
        self, slices_max: int = PAGE_SLICES, *, timeout: float | None = None
    ) -> Iterator[list[PlannedSlice]]:
        """All slices in order of position. PlanOutdated if the log was trimmed meanwhile, or a
        promotion has moved records past the settled position that were planned as speculative.
        """
        return each(self._loop, self._plan.pages(slices_max, timeout=timeout))

    def renew(self, lease: float = LEASE_S, *, timeout: float | None = None) -> Plan:
        """Let it live for this many seconds from now on. PlanEnded if it does no more."""
        return self._loop.run(self._plan.renew(lease, timeout=timeout))

    def end(self, *, timeout: float | None = None) -> None:
        """The scan is over: what only it held may be deleted."""
        self._loop.run(self._plan.end(timeout=timeout))

    def sign(
        self, slices: Sequence[PlannedSlice], *, timeout: float | None = None
    ) -> list[SignedRange]:
        """Where these slices can be fetched without keys of the store, for some minutes.

        Slices that touch are one range. `Range: bytes=OFFSET-LAST` goes with the request; a file://
        URL is that of the whole object. NotFetchable where nobody else gets to the objects.
        """
        return self._loop.run(self._plan.sign(slices, timeout=timeout))
