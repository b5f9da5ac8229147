"""Plain reads: which bytes, the bytes, the answer (AgileLog, 5.3; spec 4 r2-r5, D1, D2).

Each asks the metadata first, so that it sees every append that was acknowledged before it came. It
gets what is settled; at the end of that it waits as long as it said it would.
"""

from collections import OrderedDict
from functools import partial

from anabranch.core.bolt.broker.context import BrokerContext
from anabranch.core.bolt.broker.inquiries import Correspondence
from anabranch.core.bolt.broker.pending import Wait, Waits
from anabranch.core.bolt.broker.rate_limits import Metering
from anabranch.core.bolt.broker.read_path.cache import Extent
from anabranch.core.bolt.broker.read_path.fetches import Fetching
from anabranch.core.bolt.broker.read_path.passages import Damage, damage, passage
from anabranch.core.bolt.protocol.commands import Description
from anabranch.core.bolt.protocol.letters import Moved
from anabranch.core.bolt.protocol.messages import Read, Records
from anabranch.core.bolt.protocol.queries import (
    Answer,
    Describe,
    Resolve,
    Resolved,
)
from anabranch.core.errors import AnabranchError, BadRequest, ReadBlocked, RecordsDamaged
from anabranch.core.errors.refused import Refused
from anabranch.core.machine import Token
from anabranch.core.records.objects import ObjectName
from anabranch.core.types import NEVER, LogId, Position

ENDS_REMEMBERED = 1_000
"""Reads that may be the first of several."""


def refusal_of(start: Position) -> BadRequest | None:
    """Positions that no log can have."""
    if 0 <= start < NEVER:
        return None
    return BadRequest(f"read from {start}", "positions begin at 0")


def refusal_of_damage(cluster: str, hurt: Damage, described: Answer) -> Refused:
    """People know logs by name, and the metadata know the names."""
    if isinstance(described, Refused):
        return described
    assert isinstance(described, Description), "Describe is answered as such"
    object = str(ObjectName.of(cluster, hurt.object))
    return Refused.of(RecordsDamaged(described.name, hurt.first, hurt.after, object, hurt.reason))


class Reading:
    """Reads on their way to an answer."""

    def __init__(
        self,
        context: BrokerContext,
        *,
        correspondence: Correspondence,
        fetching: Fetching,
        waits: Waits,
        metering: Metering,
    ) -> None:
        self._cluster = context.cluster
        self._limits = context.limits
        self._outbox = context.outbox
        self._correspondence = correspondence
        self._fetching = fetching
        self._waits = waits
        self._metering = metering
        self._ends: OrderedDict[tuple[LogId, Position], None] = OrderedDict()
        """Where answers lately ended short of the tail: who reads on from there goes through."""

    def read(self, token: Token, message: Read) -> None:
        fault = _fault(message) or self._metering.refuse_read(message.log)
        if fault is not None:
            self._outbox.refuse(token, fault)
            return
        wait = self._waits.begin(token)
        if wait is not None:
            self._outbox.counters.reads += 1
            self._resolve(wait, message)

    def _resolve(self, wait: Wait, message: Read) -> None:
        assert not wait.over, "nobody waits for the answer"
        bytes_max = min(message.bytes_max, self._limits.read_bytes_max)
        goes_on = (message.log, message.start) in self._ends
        ahead_bytes = self._fetching.ahead_bytes if goes_on else 0
        query = Resolve(
            message.log, message.start, message.records_max, bytes_max, ahead_bytes=ahead_bytes
        )
        self._correspondence.ask(query, partial(self._resolved, wait, message))

    def _resolved(self, wait: Wait, message: Read, answer: Answer) -> None:
        if wait.over:
            return
        if isinstance(answer, Refused):
            self._refuse(wait, answer)
            return
        assert isinstance(answer, Resolved), "Resolve is answered as such"
        self._metering.told((message.log,), answer.quotas)
        if answer.slices:
            self._fetching.fetch(answer.slices, partial(self._fetched, wait, message, answer))
            self._fetching.read_ahead(answer.ahead)
        else:
            self._nothing(wait, message, answer)

    def _nothing(self, wait: Wait, message: Read, answer: Resolved) -> None:
        """At the end of what is settled: wait for more, then say so, or what blocks."""
        assert not answer.slices, "there is something to be read"
        blocked = message.start < answer.tail
        wait_ms = min(message.wait_ms, self._limits.read_wait_ms_max)
        if blocked:
            wait_ms = min(wait_ms, self._limits.blocked_wait_ms)
        left_ms = self._waits.left_ms(wait, wait_ms)
        too_late = partial(self._too_late, wait, message, answer)
        if left_ms <= 0:
            too_late()
            return
        self._outbox.counters.reads_waited += 1

        def wakes(moved: Moved) -> bool:
            blocked_now = message.start < moved.tail and not blocked
            return moved.settled > message.start or blocked_now or moved.ended is not None

        again = partial(self._resolve, wait, message)
        self._waits.sleep(wait, message.log, wakes, again, left_ms, too_late)

    def _too_late(self, wait: Wait, message: Read, answer: Resolved) -> None:
        if message.start >= answer.tail:
            self._waits.end(wait)
            empty = Records([], [], message.start, answer.start, answer.tail, answer.settled)
            self._outbox.reply(wait.token, empty)
            return
        self._correspondence.ask(Describe(message.log), partial(self._blocked, wait, message))

    def _blocked(self, wait: Wait, message: Read, described: Answer) -> None:
        """People know logs by name, and the metadata know the names."""
        if wait.over:
            return
        if isinstance(described, Refused):
            self._refuse(wait, described)
            return
        assert isinstance(described, Description), "Describe is answered as such"
        fork = described.undecided
        if fork is None or message.start < described.settled:
            self._resolve(wait, message)
            return
        self._refuse(wait, ReadBlocked(described.name, message.start, fork))

    def _fetched(
        self,
        wait: Wait,
        message: Read,
        answer: Resolved,
        extents: list[Extent] | Refused,
    ) -> None:
        if wait.over:
            return
        if isinstance(extents, Refused):
            self._refuse(wait, extents)
            return
        assert len(extents) == len(answer.slices), "each slice is of an extent"
        bytes_max = min(message.bytes_max, self._limits.read_bytes_max)
        end = min(answer.settled, message.start + message.records_max)
        hurt = damage(answer.slices, extents, message.start)
        if hurt is not None:
            if hurt.first == message.start:
                named = partial(self._damaged, wait, hurt)
                self._correspondence.ask(Describe(message.log), named)
                return
            # What lies before it is delivered; who reads on meets it first.
            end = min(end, hurt.first)
        found = passage(answer.slices, extents, message.start, end, bytes_max)
        self._waits.end(wait)
        self._outbox.counters.batches_read += len(found.batches)
        self._outbox.counters.bytes_read += found.bytes
        self._metering.read(message.log, found.bytes)
        if found.next < answer.settled:
            self._ends[message.log, found.next] = None
            if len(self._ends) > ENDS_REMEMBERED:
                self._ends.popitem(last=False)
        records = Records(
            found.runs, found.batches, found.next, answer.start, answer.tail, answer.settled
        )
        self._outbox.reply(wait.token, records)

    def _damaged(self, wait: Wait, hurt: Damage, described: Answer) -> None:
        if not wait.over:
            self._refuse(wait, refusal_of_damage(self._cluster, hurt, described))

    def _refuse(self, wait: Wait, why: AnabranchError | Refused) -> None:
        assert not wait.over, "it was answered already"
        self._waits.end(wait)
        self._outbox.refuse(wait.token, why)


def _fault(message: Read) -> AnabranchError | None:
    if message.records_max < 1:
        return BadRequest(f"records_max of {message.records_max}", "at least 1 must be asked for")
    if message.bytes_max < 1:
        return BadRequest(f"bytes_max of {message.bytes_max}", "at least 1 must be asked for")
    return refusal_of(message.start)
