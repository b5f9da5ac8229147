"""A reader that plans a scan, and gets the objects from the store long after (decision 75).

What it may count on: a renewal that is granted says that the plan has been alive since it was made.
So every object that a page named must have been there until then, whatever has become of the log,
and hold the records that the log had when the scan was planned.
"""

from collections.abc import Callable
from functools import partial

from anabranch.core.bolt.protocol.commands import Done
from anabranch.core.bolt.protocol.messages import ServerMessage
from anabranch.core.bolt.protocol.queries import PlanPage, Slice
from anabranch.core.bolt.protocol.scans import (
    EndPlan,
    Plan,
    PlanScan,
    ReadPlan,
    RenewPlan,
    SealedSlice,
    SignedScan,
    SignScan,
)
from anabranch.core.errors import AnabranchError
from anabranch.core.history.calls import Scan
from anabranch.core.records.objects import ObjectName
from anabranch.core.records.origins import Run, deliveries
from anabranch.core.types import MS, LogId, Milliseconds, Nanoseconds, Position
from anabranch_sim.bolt.client import SimClient
from anabranch_sim.bolt.directory import Directory

Answer = ServerMessage | AnabranchError

OVER = {"plan-ended", "plan-outdated", "promoted", "squashed", "unknown-log", "wrong-engine"}
"""Refusals after which there are no further pages."""
SHORT_LEASE_MS: Milliseconds = 400
LEASES_MS = (SHORT_LEASE_MS, 4_000, 10_000, 10_000)
"""Short ones are renewed late, and mostly lapse."""
SEAL_BYTES = 8


class Scanner:
    """One scan after the other, each held for as long as garbage lives and a little more."""

    def __init__(
        self, client: SimClient, directory: Directory, scans: int, pause: Nanoseconds
    ) -> None:
        self.client = client
        self.directory = directory
        self.done = False
        self._left = scans
        self._pause = pause
        self._rng = client.world.rng

    def next(self) -> None:
        if self._left == 0:
            self.done = True
            return
        self._left -= 1
        self.client.world.after(self.client.world.between(0, self._pause), self._begin)

    def _begin(self) -> None:
        of = self.directory.any(self._rng)
        if of is None:
            self.client.world.after(self._pause, self._begin)
            return
        _Scan(self.client, of.log, self._rng.choice(LEASES_MS), self.next).begin()


class _Scan:
    def __init__(
        self, client: SimClient, log: LogId, lease_ms: Milliseconds, then: Callable[[], None]
    ) -> None:
        self._client = client
        self._world = client.world
        self._log = log
        self._lease_ms = lease_ms
        self._then = then
        self._slices: list[Slice] = []
        self._seals: list[int] = []
        self._call = Scan(client=client.number, log=log, invoked=0, first=0, records=[])

    def begin(self) -> None:
        request = self._world.rng.randbytes(16)
        message = PlanScan(self._log, request, self._lease_ms, by=self._client.name)
        self._client.ask(f"plan a scan of {self._log}", message, self._call, self._planned)

    def _planned(self, answer: Answer) -> None:
        if not isinstance(answer, Plan):
            self._then()
            return
        self._plan = answer
        self._call.first, self._call.settled = answer.start, answer.settled
        limits = self._client.cluster.options.limits
        held_ms = limits.grace_ms + 4 * limits.gc_interval_ms
        self._until = self._world.now + held_ms * MS
        self._page(answer.start)

    def _page(self, start: Position) -> None:
        if start == self._plan.end:
            self._sign()
            return
        message = ReadPlan(self._log, self._plan.id, start, self._world.rng.choice((1, 2, 5)))
        told = partial(self._paged, start)
        self._client.ask(f"page of a scan of {self._log}", message, None, told)

    def _paged(self, start: Position, answer: Answer) -> None:
        pause = self._world.between(0, 600 * MS)
        if isinstance(answer, PlanPage):
            if not answer.slices or answer.slices[0].first != start:
                self._fault(f"a page from {start} on begins elsewhere")
            if answer.secret or len(answer.seals) != SEAL_BYTES * len(answer.slices):
                self._fault("a page is sealed badly")
            self._slices += answer.slices
            seals = (answer.seals[at : at + 8] for at in range(0, len(answer.seals), SEAL_BYTES))
            self._seals += map(int.from_bytes, seals)
            self._world.after(pause, partial(self._page, answer.next))
        elif isinstance(answer, AnabranchError) and answer.code in OVER:
            self._sign()
        else:
            self._world.after(pause, partial(self._page, start))

    def _sign(self) -> None:
        """All that was named, at times with a byte that wasn't."""
        if not self._slices:
            self._hold()
            return
        asked = [
            SealedSlice(each.object, each.offset, each.length, seal)
            for each, seal in zip(self._slices, self._seals, strict=True)
        ]
        forged = self._world.rng.random() < 0.3
        if forged:
            last = asked.pop()
            asked.append(SealedSlice(last.object, last.offset, last.length + 1, last.seal))
        message = SignScan(self._log, self._plan.id, asked)
        told = partial(self._signed, sum(each.length for each in asked), forged)
        self._client.ask(f"sign a scan of {self._log}", message, None, told)

    def _signed(self, size: int, forged: bool, answer: Answer) -> None:
        if isinstance(answer, SignedScan):
            if forged:
                self._fault("a slice was signed that no page has named")
            if sum(each.length for each in answer.ranges) != size:
                self._fault("other bytes were signed than were asked for")
        elif isinstance(answer, AnabranchError) and answer.code == "not-sealed" and not forged:
            self._fault("what a page has named wasn't signed")
        self._hold()

    def _hold(self) -> None:
        if self._world.now >= self._until:
            self._renew(self._fetched)
        else:
            lease = self._lease_ms * MS
            wait = self._world.between(lease // 4, lease // 2)
            if self._lease_ms == SHORT_LEASE_MS:
                wait = self._world.between(lease // 2, 2 * lease)
            self._world.after(wait, partial(self._renew, self._hold))

    def _renew(self, then: Callable[[], None]) -> None:
        """Look first: what wasn't there then has gone while the plan was alive, if it still is."""
        objects = self._client.cluster.store.objects
        missing = [each for each in self._slices if self._name(each) not in objects]
        message = RenewPlan(self._log, self._plan.id, self._lease_ms)
        told = partial(self._renewed, missing, then)
        self._client.ask(f"renew a scan of {self._log}", message, None, told)

    def _renewed(self, missing: list[Slice], then: Callable[[], None], answer: Answer) -> None:
        if isinstance(answer, Plan):
            if missing:
                self._fault(f"{self._name(missing[0])} is gone, and a live plan names it")
                self._then()
                return
            then()
        elif isinstance(answer, AnabranchError) and answer.code == "plan-ended":
            self._then()
        else:
            pause = self._world.between(0, self._lease_ms * MS // 4)
            self._world.after(pause, partial(self._renew, then))

    def _fetched(self) -> None:
        """Within the turn in which a renewal was told: nothing has changed since it was granted
        that the plan, whose lease has just begun, doesn't hold.
        """
        objects = self._client.cluster.store.objects
        runs: list[Run] = []
        parts: list[bytes] = []
        for each in self._slices:
            content = objects.get(self._name(each), b"")
            parts.append(content[each.offset : each.offset + each.length])
            runs.append(
                Run(each.first, each.count, each.skip, each.origin, each.origin_first, each.length)
            )
        try:
            found = [*deliveries(runs, parts)] if runs else []
        except AnabranchError as error:
            self._fault(f"what a plan names can't be read: {error.message}")
            found = []
        account = self._client.account
        for position, origin, there, record in found:
            if position != self._call.first + len(self._call.records):
                self._fault(f"{position} was named out of turn")
            self._call.records.append(account.identify(record))
            self._call.origins.append((origin, there))
        account.scanned += len(found)
        message = EndPlan(self._log, self._plan.id)
        self._client.ask(f"end a scan of {self._log}", message, None, self._ended)

    def _ended(self, answer: Answer) -> None:
        if not isinstance(answer, Done | AnabranchError):
            self._fault("a plan wasn't ended")
        self._then()

    def _name(self, each: Slice) -> str:
        return str(ObjectName.of(self._client.cluster.around.cluster, each.object))

    def _fault(self, what: str) -> None:
        name = f"scan of {self._log} from {self._call.first} on"
        self._client.account.faults.append(f"scan plans: {name}: {what}")
