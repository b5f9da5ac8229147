"""A replica's journal: entries go in as groups, one at a time, and are read back in pieces."""

from collections import deque
from collections.abc import Callable, Sequence

from anabranch.core.alarms import Alarms
from anabranch.core.errors import AnabranchError
from anabranch.core.lateness import Delays
from anabranch.core.limits import MIB
from anabranch.core.machine import Effect, EntriesRead, Persist, ReadEntries, ReadFailed, Token
from anabranch.core.replication.entries import Entry, encode
from anabranch.core.types import Nanoseconds

GROUP_BYTES_MAX = 8 * MIB
AGAIN_MS = 100
"""After a failure, until it is tried again."""


class Journaling:
    """`on_stored` is told of each entry, in order, when it is in the journal, and of its index."""

    def __init__(
        self, effects: list[Effect], alarms: Alarms, on_stored: Callable[[int, Entry], None]
    ) -> None:
        self.obstacle: str | None = None
        self.unreadable: str | None = None
        """Why the last that was asked for can't be read."""
        self.unstored_bytes = 0
        self.last = 0
        """The index of the last entry that is known to be in the journal."""
        self._effects = effects
        self._alarms = alarms
        self._on_stored = on_stored
        self._waiting: deque[tuple[Entry, bytes]] = deque()
        self._group: list[tuple[Entry, bytes]] = []
        self._in_flight = False
        self._resting = False
        self._settled: list[tuple[int, Callable[[], None]]] = []
        self._put = 0
        self._done = 0
        self._reads: dict[Token, Callable[[Sequence[bytes]], None]] = {}
        self._token = 0
        self.delays = Delays()
        """Of writes, and of whatever else its owner notes."""
        self._began: Nanoseconds = 0
        """When the group in flight was given to the disk."""

    @property
    def delay(self) -> Nanoseconds:
        """The longest of late; the write in flight counts."""
        longest = self.delays.longest(self._alarms.now)
        return max(longest, self._alarms.now - self._began) if self._in_flight else longest

    def put(self, entry: Entry) -> None:
        encoded = encode(entry)
        self._waiting.append((entry, encoded))
        self.unstored_bytes += len(encoded)
        self._put += 1

    def when_stored(self, action: Callable[[], None]) -> None:
        """Once all that was put so far is in the journal; at once if it is."""
        if self._done == self._put:
            action()
        else:
            self._settled.append((self._put, action))

    def persisted(self, last: int) -> None:
        assert self._in_flight
        group, self._group = self._group, []
        self._in_flight = False
        self.delays.note(self._alarms.now - self._began, self._alarms.now)
        self.obstacle = None
        index = last - len(group)
        for entry, encoded in group:
            index += 1
            self.unstored_bytes -= len(encoded)
            self._done += 1
            self.last = index
            self._on_stored(index, entry)
            while self._settled and self._settled[0][0] == self._done:
                self._settled.pop(0)[1]()

    def persist_failed(self, error: AnabranchError) -> None:
        """The same group again, later: nobody was told of it."""
        assert self._in_flight
        self._in_flight = False
        self._resting = True
        self.obstacle = error.message
        self._alarms.after(AGAIN_MS, self._rested)

    def read(self, first: int, upto: int, then: Callable[[Sequence[bytes]], None]) -> None:
        """Nothing, some time later, if they can't be read."""
        self._token += 1
        self._reads[self._token] = then
        self._effects.append(ReadEntries(self._token, first, upto))

    def entries_read(self, event: EntriesRead | ReadFailed) -> None:
        then = self._reads.pop(event.token)
        if isinstance(event, EntriesRead):
            self.unreadable = None
            then(event.entries)
        else:
            self.unreadable = event.error.message
            self._alarms.after(AGAIN_MS, lambda: then(()))

    def settle(self) -> None:
        if self._in_flight or self._resting:
            return
        if not self._group:
            self._gather()
        if self._group:
            self._in_flight = True
            self._began = self._alarms.now
            self._effects.append(Persist([encoded for _, encoded in self._group]))

    def _gather(self) -> None:
        room = GROUP_BYTES_MAX
        while self._waiting and room > 0:
            self._group.append(self._waiting.popleft())
            room -= len(self._group[-1][1])

    def _rested(self) -> None:
        self._resting = False
