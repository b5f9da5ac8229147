"""Copying a log's small extents into one object, for the leader, when there is time for it.

The batches are read, verified and written as they are, in their order. The metadata decide whether
the copy takes the place of what was copied; until they have, the broker begins no other, so that
its objects come to them in order.
"""

from collections import deque
from collections.abc import Callable
from functools import partial

import msgspec
from msgspec.structs import replace

from anabranch.core.bolt.broker.checked_copies import joined_extents
from anabranch.core.bolt.broker.context import BrokerContext
from anabranch.core.bolt.broker.inquiries import Correspondence
from anabranch.core.bolt.broker.read_path.cache import Extent
from anabranch.core.bolt.broker.read_path.fetches import Fetching
from anabranch.core.bolt.broker.write_path.commits import Writing
from anabranch.core.bolt.protocol.commands import (
    Outcome,
)
from anabranch.core.bolt.protocol.compaction import Copied, Joined, SwapExtents, Swapped
from anabranch.core.bolt.protocol.letters import CopyExtents
from anabranch.core.bolt.protocol.queries import Slice
from anabranch.core.errors import BrokerFenced
from anabranch.core.errors.refused import Refused
from anabranch.core.machine import Buffer, PutObject
from anabranch.core.records.objects import lay_out
from anabranch.core.records.set_sum import UNKNOWN, set_sum
from anabranch.core.types import MS, LogId, Nanoseconds, ObjectId

QUEUED_MAX = 4
"""What is asked for beyond this is forgotten; a leader asks for less."""
READ_AT_ONCE = 16
"""Extents: reads of clients find the store as idle as it was."""
LOOK_MS = 50
"""While appends are being written, so often to see whether they still are."""
LOOKS_MAX = 4
"""Under a load that never ends a copy takes its turn all the same."""


class _Copy(msgspec.Struct, eq=False):
    """One that is being made."""

    asked: CopyExtents
    asked_at: Nanoseconds
    batches: list[Buffer] = []
    extents: int = 0
    """Read so far."""
    read: list[Copied] = []
    """Those, each with the set sum of what was read."""


class Compacting:
    """One copy at a time, and those that wait for it."""

    def __init__(
        self,
        context: BrokerContext,
        *,
        correspondence: Correspondence,
        fetching: Fetching,
        writing: Writing,
    ) -> None:
        self._broker = context.name
        self._cluster = context.cluster
        self._limits = context.limits
        self._outbox = context.outbox
        self._alarms = context.alarms
        self._correspondence = correspondence
        self._fetching = fetching
        self._writing = writing
        self._queue: deque[_Copy] = deque()
        self._copy: _Copy | None = None
        self.flying: ObjectId | None = None
        """The object that is being put."""

    def copy(self, asked: CopyExtents) -> None:
        if len(self._queue) < QUEUED_MAX:
            self._queue.append(_Copy(asked, self._alarms.now))
            self._next()

    def landed(self) -> None:
        """The object is durable."""
        assert self._copy is not None
        assert self.flying is not None
        log, extents = self._copy.asked.log, self._copy.read
        joined = [*joined_extents(extents, self._copy.asked.joined)]
        self._outbox.usage.wrote([(log, sum(each.length for each in joined))])
        self._propose(log, extents, joined)

    def crashed(self) -> None:
        """The object may be there: it takes the place of nothing, and so is garbage."""
        assert self._copy is not None
        self._outbox.counters.put_failures += 1
        self._propose(self._copy.asked.log, [], [])

    def _next(self) -> None:
        """What has waited for as long as the leader does is another broker's by now."""
        oldest = self._alarms.now - self._limits.compact_wait_ms * MS
        while self._copy is None and self._queue:
            copy = self._queue.popleft()
            if copy.asked_at > oldest:
                self._copy = copy
                self._when_idle(self._read)

    def _when_idle(self, action: Callable[[], None], looks: int = 1) -> None:
        assert self._copy is not None
        assert looks > 0
        if self._writing.idle or (self._writing.has_room and looks > LOOKS_MAX):
            action()
        else:
            self._alarms.after(LOOK_MS, partial(self._when_idle, action, looks + 1))

    def _read(self) -> None:
        copy = self._copy
        assert copy is not None
        some = copy.asked.extents[copy.extents : copy.extents + READ_AT_ONCE]
        if some:
            slices = [_slice(copy.asked.log, extent) for extent in some]
            self._fetching.fetch(slices, partial(self._fetched, some), passing=True)
        else:
            self._put(copy)

    def _fetched(self, some: list[Copied], found: list[Extent] | Refused) -> None:
        copy = self._copy
        assert copy is not None
        if isinstance(found, Refused):
            self._end()
            return
        read = [
            replace(asked, sum=set_sum(extent.batches))
            for extent, asked in zip(found, some, strict=True)
        ]
        if any(
            extent.holes or extent.upto[-1] != asked.count or asked.sum not in (UNKNOWN, each.sum)
            for extent, asked, each in zip(found, some, read, strict=True)
        ):
            self._end()
            return
        copy.read += read
        for extent in found:
            copy.batches.extend(extent.batches)
        copy.extents += len(some)
        self._when_idle(self._read)

    def _put(self, copy: _Copy) -> None:
        assert copy.batches, "nothing was read"
        assert self.flying is None, "one object at a time"
        parts, placed = lay_out(self._cluster, [(copy.asked.log, copy.batches)])
        copy.batches = []
        counters = self._outbox.counters
        counters.puts += 1
        counters.puts_bytes += placed[0].length
        counters.copied_extents += copy.extents
        counters.copied_bytes += placed[0].length
        self.flying = self._writing.give_name()
        self._outbox.effects.append(PutObject(self.flying, parts))

    def _propose(self, log: LogId, extents: list[Copied], joined: list[Joined]) -> None:
        assert self.flying is not None
        command = SwapExtents(self._broker, self.flying, log, extents, joined)
        self.flying = None
        self._correspondence.propose(b"", command, self._answered, patient=True)

    def _answered(self, outcome: Outcome) -> None:
        if isinstance(outcome, Refused) and outcome.code == BrokerFenced.code:
            self._writing.on_fenced(outcome)
            return
        if isinstance(outcome, Swapped):
            self._outbox.counters.copies += not outcome.why
            self._outbox.counters.copies_in_vain += bool(outcome.why)
        self._end()

    def _end(self) -> None:
        assert self._copy is not None, "nothing is being copied"
        self._copy = None
        self._next()


def _slice(log: LogId, extent: Copied) -> Slice:
    assert extent.count > 0, "an extent has a record at least"
    return Slice(
        first=extent.first,
        count=extent.count,
        object=extent.object,
        offset=extent.offset,
        length=extent.length,
        skip=0,
        origin=log,
        origin_first=extent.first,
    )
