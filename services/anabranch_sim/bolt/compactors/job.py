"""A compactor that is late, doubles, lies and dies, beside brokers that compact (decision 83).

What it may count on: while it is alive nothing that it wrote is taken for an orphan. What others
may count on: a copy that holds anything else takes the place of nothing, nothing is adopted after
its end, and none of its objects comes after its epoch is forgotten.
"""

from collections.abc import Callable, Iterator
from functools import partial
from hashlib import sha256

from anabranch.core.bolt.protocol.commands import Done
from anabranch.core.bolt.protocol.compactors import (
    AdoptCopy,
    Adopted,
    Compactor,
    CopyToMake,
    EndCompactor,
    NewCopy,
    RegisterCompactor,
    RenewCompactor,
    SignCopies,
    SignedCopies,
    TakeCopies,
    TakenCopies,
)
from anabranch.core.bolt.protocol.messages import ClientMessage, ServerMessage
from anabranch.core.bolt.protocol.scans import Plan, PlanScan
from anabranch.core.errors import AnabranchError, CompactorEnded
from anabranch.core.records.batch import split
from anabranch.core.records.objects import ObjectName, lay_out, object_id
from anabranch.core.types import MS, LogId, Milliseconds, Nanoseconds, ObjectId
from anabranch_sim.bolt.client import SimClient
from anabranch_sim.bolt.compactors.options import LEASES_MS
from anabranch_sim.bolt.directory import Directory

Answer = ServerMessage | AnabranchError
ATTEMPTS_MAX = 4
SAMPLED = 3
"""Of so many logs the longest: most forks have little of their own."""
WAVES = 5
"""Logs that one job looks at."""
USUAL_MS = 500
"""Between two steps; seldom as long as a lease."""
_HEADER_BYTES = 61
"""Of a record batch; what lies behind it its CRC covers."""


class CompactorUser:
    """One job after the other."""

    def __init__(
        self, client: SimClient, directory: Directory, jobs: int, pause: Nanoseconds
    ) -> None:
        self.client = client
        self.directory = directory
        self.done = False
        self._left = jobs
        self._pause = pause
        self._rng = client.world.rng

    def next(self) -> None:
        if self._left == 0:
            self.done = True
            return
        self._left -= 1
        self.client.world.after(self.client.world.between(0, self._pause), self._begin)

    def _begin(self) -> None:
        if not self.directory.living():
            self.client.world.after(self._pause, self._begin)
            return
        _Job(self.client, self.directory, self._rng.choice(LEASES_MS), self.next).begin()


class _Copy:
    """One object on its way."""

    def __init__(self, sequence: int, order: CopyToMake, content: bytes, *, wrong: bool) -> None:
        self.sequence = sequence
        self.order = order
        self.content = content
        self.wrong = wrong
        """It isn't the copy that it is said to be."""
        self.written = False
        self.adopted: Adopted | None = None


class _Job:
    def __init__(
        self,
        client: SimClient,
        directory: Directory,
        lease_ms: Milliseconds,
        then: Callable[[], None],
    ) -> None:
        self._client = client
        self._directory = directory
        self._world = client.world
        self._rng = client.world.rng
        self._log = LogId(0)
        self._lease_ms = lease_ms
        self._then = then
        self._waves = WAVES
        self._sequence = 0
        self._orders: Iterator[CopyToMake] = iter(())
        self._held: _Copy | None = None
        """Written, and to be adopted when it is too late."""

    def begin(self) -> None:
        message = RegisterCompactor("sim", self._lease_ms, self._rng.randbytes(16))
        self._ask("register a compactor", message, self._registered)

    def _registered(self, answer: Answer) -> None:
        if not isinstance(answer, Compactor):
            self._then()
            return
        self._compactor = answer
        self._wave()

    def _wave(self) -> None:
        """Of some log; many have nothing that is worth copying."""
        living = self._directory.living()
        if self._waves == 0 or not living:
            self._end()
            return
        self._waves -= 1
        few = self._rng.sample(living, min(SAMPLED, len(living)))
        self._log = max(few, key=lambda each: each.tail).log
        request = self._rng.randbytes(16)
        message = PlanScan(self._log, request, 10_000, by=self._client.name)
        self._step(partial(self._ask, "plan a copy", message, self._planned))

    def _planned(self, answer: Answer) -> None:
        if not isinstance(answer, Plan):
            self._renewed_to(self._wave)
            return
        self._plan = answer
        self._step(self._take)

    def _take(self, since: int = 0) -> None:
        count = self._rng.choice((1, 2, 5))
        message = TakeCopies(self._compactor.id, self._log, self._plan.id, since, count)
        self._ask("take copies", message, self._taken)

    def _taken(self, answer: Answer) -> None:
        if not isinstance(answer, TakenCopies):
            self._renewed_to(self._wave)
            return
        named = sum(len(each.extents) for each in answer.copies)
        if answer.secret or len(answer.seals) != 8 * named:
            self._fault("copies are sealed badly")
        self._orders = iter(answer.copies)
        self._step(self._copy)

    def _copy(self) -> None:
        """The next of those that were taken; then of another log."""
        order = next(self._orders, None)
        if order is None:
            self._renewed_to(self._wave)
            return
        self._sequence += 1
        made = self._content(order)
        if made is None:
            self._step(self._copy)
            return
        content, wrong = made
        copy = _Copy(self._sequence, order, content, wrong=wrong)
        new = NewCopy(copy.sequence, len(content), sha256(content).digest())
        message = SignCopies(self._compactor.id, [new])
        self._step(partial(self._ask, "sign a copy", message, partial(self._signed, copy)))

    def _content(self, order: CopyToMake) -> tuple[bytes, bool] | None:
        """The object, or something that isn't it; None if the extents have gone."""
        extents: list[list[bytes]] = []
        for each in order.extents:
            whole = self._objects.get(self._name(each.object), b"")
            part = whole[each.offset : each.offset + each.length]
            if len(part) != each.length:
                return None
            extents.append([part[at : at + size] for at, size, _ in split(part)])
        batches = [batch for extent in extents for batch in extent]
        chance = self._rng.random()
        if chance < 0.15 and len(extents) > 1:
            # Other batches at every place, unless they all look alike: their records differ.
            batches = [batch for extent in extents[1:] + extents[:1] for batch in extent]
        elif chance < 0.3:
            spoilt = bytearray(batches[-1])
            spoilt[self._rng.randrange(_HEADER_BYTES, len(spoilt))] ^= 1 << self._rng.randrange(8)
            batches[-1] = bytes(spoilt)
        parts, _ = lay_out(self._client.cluster.around.cluster, [(self._log, batches)])
        return b"".join(parts), chance < 0.3 and (chance >= 0.15 or len(extents) > 1)

    def _signed(self, copy: _Copy, answer: Answer) -> None:
        if not isinstance(answer, SignedCopies):
            self._end()
            return
        (target,) = answer.copies
        if target.object != object_id(self._compactor.id, copy.sequence):
            self._fault("another object was signed")
        put = partial(self._put, copy, target.url, int(target.headers["until"]))
        if self._rng.random() < 0.15:
            # As late as it can be, whatever has become of the job by then.
            last = max(0, int(target.headers["until"]) - self._world.now)
            self._world.after(self._world.between(last // 2, last), put)
        self._step(partial(put, then=partial(self._step, partial(self._adopt, copy))))

    def _put(
        self, copy: _Copy, name: str, until: Nanoseconds, then: Callable[[], None] | None = None
    ) -> None:
        def told(outcome: AnabranchError | bytes | None) -> None:
            copy.written = copy.written or outcome is None
            if then is not None:
                then()

        store = self._client.cluster.store
        store.put_signed(name, copy.content, until, told, self._created)

    def _created(self, name: str) -> None:
        """The store has the object from now on: whoever would find it as an orphan still looks."""
        states = self._client.cluster.states()
        if states:
            replica = max(states, key=lambda each: each[0])[1].replica
            if self._compactor.key not in replica.brokers:
                self._fault(f"{name} came after its epoch was forgotten")

    def _adopt(self, copy: _Copy, attempts: int = 1) -> None:
        missing = copy.written and not copy.adopted and self._object(copy) not in self._objects
        if missing:
            self._renew(partial(self._missed, copy))
            return
        if attempts == 1 and copy.adopted is None and self._rng.random() < 0.15:
            self._held = copy
            self._end()
            return
        self._ask("adopt a copy", self._message(copy), partial(self._adopted, copy, attempts))

    def _message(self, copy: _Copy) -> AdoptCopy:
        return AdoptCopy(
            self._compactor.id,
            self._log,
            copy.sequence,
            len(copy.content),
            copy.order.extents,
            copy.order.joined,
        )

    def _adopted(self, copy: _Copy, attempts: int, answer: Answer) -> None:
        if isinstance(answer, Adopted):
            if copy.wrong and not answer.why:
                self._fault(f"object {copy.sequence} was adopted and isn't a copy")
            if copy.adopted and copy.adopted.fewer != answer.fewer:
                self._fault(f"object {copy.sequence} was adopted twice, with other outcomes")
            again = copy.adopted is None and self._rng.random() < 0.3
            copy.adopted = answer
            self._step(partial(self._adopt, copy) if again else self._renewed)
        elif attempts < ATTEMPTS_MAX and isinstance(answer, AnabranchError) and answer.may_pass:
            self._step(partial(self._adopt, copy, attempts + 1))
        else:
            self._step(self._renewed)

    def _missed(self, copy: _Copy, answer: Answer) -> None:
        if isinstance(answer, Compactor):
            self._fault(f"{self._object(copy)} is gone, and its compactor is alive")
        self._end()

    def _renewed(self) -> None:
        self._renewed_to(self._copy)

    def _renewed_to(self, action: Callable[[], None]) -> None:
        def renewed(answer: Answer) -> None:
            over = isinstance(answer, AnabranchError) and answer.code == CompactorEnded.code
            if over:
                self._then()
            else:
                self._step(action)

        self._renew(renewed)

    def _renew(self, then: Callable[[Answer], None]) -> None:
        message = RenewCompactor(self._compactor.id, self._lease_ms)
        self._ask("renew a compactor", message, then)

    def _end(self) -> None:
        """Some are only left, and lapse."""
        if self._rng.random() < 0.3:
            self._then()
            return
        message = EndCompactor(self._compactor.id)
        self._ask("end a compactor", message, self._ended)

    def _ended(self, answer: Answer) -> None:
        if isinstance(answer, Done) and self._held is not None:
            self._ask("adopt after the end", self._message(self._held), self._refused)
        else:
            self._then()

    def _refused(self, answer: Answer) -> None:
        if isinstance(answer, Adopted):
            self._fault("something was adopted after the end")
        self._then()

    def _step(self, action: Callable[[], None]) -> None:
        """Go on some time later, or never: the job dies, and its lease goes on without it."""
        chance = self._rng.random()
        if chance < 0.03:
            self._then()
            return
        longest = self._lease_ms if chance < 0.08 else min(self._lease_ms // 4, USUAL_MS)
        self._world.after(self._world.between(0, longest * MS), action)

    def _ask(self, what: str, message: ClientMessage, then: Callable[[Answer], None]) -> None:
        self._client.ask(f"{what} of {self._log}", message, None, then)

    @property
    def _objects(self) -> dict[str, bytes]:
        return self._client.cluster.store.objects

    def _object(self, copy: _Copy) -> str:
        return self._name(object_id(self._compactor.id, copy.sequence))

    def _name(self, object: int) -> str:
        cluster = self._client.cluster.around.cluster
        return str(ObjectName.of(cluster, ObjectId(object)))

    def _fault(self, what: str) -> None:
        self._client.account.faults.append(f"compactors: {self._compactor.id}: {what}")
