"""A machine's journal: it writes one group of entries at a time, and reads ranges back."""

from collections import deque
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from anabranch.core.alarms import Alarms
from anabranch.core.errors import AnabranchError
from anabranch.core.lateness import Delays
from anabranch.core.limits import MIB
from anabranch.core.machine import Effect, EntriesRead, Persist, ReadEntries, ReadFailed, Token
from anabranch.core.types import Nanoseconds

GROUP_BYTES_MAX = 8 * MIB
RETRY_MS = 100
"""The pause after a failure, before the write or the read is repeated."""

E = TypeVar("E")


class GroupJournal(Generic[E]):
    """Calls `on_stored` for each entry, in order, with its index once the entry is stored."""

    def __init__(
        self,
        effects: list[Effect],
        alarms: Alarms,
        encode: Callable[[E], bytes],
        on_stored: Callable[[int, E], None],
    ) -> None:
        self.obstacle: str | None = None
        """Why the last write failed; it is repeated."""
        self.unreadable: str | None = None
        """Why the last read failed; it is repeated."""
        self.unstored_bytes = 0
        """Bytes that wait for the disk: the owner bounds them."""
        self.last = 0
        """The index of the last entry that is known to be stored."""
        self.delays = Delays()
        """Of writes, and of anything else that the owner records here."""
        self._effects = effects
        self._alarms = alarms
        self._encode = encode
        self._on_stored = on_stored
        self._waiting: deque[tuple[E, bytes]] = deque()
        self._group: list[tuple[E, bytes]] = []
        """In flight, or to be written again after a failure."""
        self._in_flight = False
        self._pausing = False
        self._looks = False
        """An empty group is to be written, or any: a journal that others may harm looks with it."""
        self._actions: deque[tuple[int, Callable[[], None]]] = deque()
        """What to do once so many entries are stored."""
        self._put = 0
        self._stored = 0
        self._reads: dict[Token, Callable[[Sequence[bytes]], None]] = {}
        self._token = 0
        self._began: Nanoseconds = 0
        """When the group in flight was given to the disk."""

    @property
    def delay(self) -> Nanoseconds:
        """The longest recent delay, the write in flight included."""
        longest = self.delays.longest(self._alarms.now)
        return max(longest, self._alarms.now - self._began) if self._in_flight else longest

    def put(self, entry: E) -> None:
        encoded = self._encode(entry)
        self._waiting.append((entry, encoded))
        self.unstored_bytes += len(encoded)
        self._put += 1

    def look(self) -> None:
        """Have a journal in another system say whether what it holds is still there, though
        nothing is put: `obstacle` tells if it isn't.
        """
        self._looks = True

    def when_stored(self, action: Callable[[], None]) -> None:
        """Run the action once every entry put so far is stored; at once if all are."""
        if self._stored == self._put:
            action()
        else:
            self._actions.append((self._put, action))

    def persisted(self, last: int) -> None:
        assert self._in_flight
        group, self._group = self._group, []
        self._in_flight = self._looks = False
        self.delays.note(self._alarms.now - self._began, self._alarms.now)
        self.obstacle = None
        assert last - len(group) >= self.last, "the journal's indices only grow"
        for index, (entry, encoded) in enumerate(group, last - len(group) + 1):
            self.unstored_bytes -= len(encoded)
            self._stored += 1
            self.last = index
            self._on_stored(index, entry)
            while self._actions and self._actions[0][0] == self._stored:
                self._actions.popleft()[1]()

    def persist_failed(self, error: AnabranchError) -> None:
        """Write the same group again later: nothing was promised on account of it."""
        assert self._in_flight
        self._in_flight = False
        self._pausing = True
        self.obstacle = error.message
        self._alarms.after(RETRY_MS, self._resume)

    def read(self, first: int, upto: int, then: Callable[[Sequence[bytes]], None]) -> None:
        """Read this range of entries. If the read fails, `then` gets nothing, after a pause."""
        assert first < upto
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
            self._alarms.after(RETRY_MS, lambda: then(()))

    def settle(self) -> None:
        """The end of a step: write what was put, unless a group is in flight."""
        if self._in_flight or self._pausing:
            return
        if not self._group:
            self._gather()
        if self._group or self._looks:
            self._in_flight = True
            self._began = self._alarms.now
            self._effects.append(Persist([encoded for _, encoded in self._group]))

    def _gather(self) -> None:
        assert not self._group, "one group is in flight, or is to be written again"
        room = GROUP_BYTES_MAX
        while self._waiting and room > 0:
            self._group.append(self._waiting.popleft())
            room -= len(self._group[-1][1])

    def _resume(self) -> None:
        assert not self._in_flight, "nothing is written during the pause"
        self._pausing = False


class VolatileJournal(Generic[E]):
    """Stands for a journal where nothing outlives the process: what a step puts counts as stored
    at the end of the step.
    """

    obstacle: str | None = None
    unstored_bytes = 0
    last = 0

    def __init__(self, on_stored: Callable[[int, E], None]) -> None:
        self._on_stored = on_stored
        self._waiting: deque[E | Callable[[], None]] = deque()

    def put(self, entry: E) -> None:
        self._waiting.append(entry)

    def when_stored(self, action: Callable[[], None]) -> None:
        if self._waiting:
            self._waiting.append(action)
        else:
            action()

    def settle(self) -> None:
        while self._waiting:
            each = self._waiting.popleft()
            if callable(each):
                each()
            else:
                self.last += 1
                self._on_stored(self.last, each)
