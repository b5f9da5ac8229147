"""Which logs a leader looks at for extents worth copying, and which broker copies them.

All of it is known to the leader alone, and can be lost: a new one looks at every log once, a few at
a time, and copies that were on their way find their swaps taken or refused as ever.
"""

from collections import deque
from itertools import islice

from anabranch.core.bolt.logs.forest import Log
from anabranch.core.bolt.metadata.compaction import SCANNED_MAX, find
from anabranch.core.bolt.protocol.commands import (
    Command,
    CommitObject,
    Outcome,
    Promote,
    Promotion,
)
from anabranch.core.bolt.protocol.compaction import SwapExtents
from anabranch.core.bolt.protocol.compactors import COMPACTOR_PREFIX
from anabranch.core.bolt.state.placement import READY
from anabranch.core.bolt.state.replica import Replica
from anabranch.core.errors import Unavailable
from anabranch.core.limits import Limits
from anabranch.core.machine import Send
from anabranch.core.types import LogId, Milliseconds, Position

IN_HAND_MAX = 2
"""Copies that one broker is asked for at a time: one that it makes, and the next."""
SEARCHES_MAX = 64
"""In one turn of the leader; and in all they look at few more extents than one may by itself."""
SWEPT_MAX = 10_000
"""Logs that a new leader asks for their length in one turn."""


class Delegation:
    """Only logs that got many extents are looked at, when these are old enough."""

    def __init__(self, replica: Replica, limits: Limits) -> None:
        self._replica = replica
        self._limits = limits
        self._fresh: dict[LogId, int] = {}
        """Extents since a log was last noted."""
        self._later: deque[tuple[Milliseconds, LogId]] = deque()
        self._ready: deque[LogId] = deque()
        self._noted: set[LogId] = set()
        """Those in `_ready`."""
        self._searched: dict[LogId, Position] = {}
        self._out: dict[LogId, tuple[str, Milliseconds]] = {}
        """Which broker or compactor copies extents of a log, and until when it may; the oldest
        first.
        """
        self._sweep = iter([*replica.forest.logs])
        self._sweeping = True
        self._asked = 0
        self.is_behind = False
        """There was more to look at than one turn has time for."""

    @property
    def is_on(self) -> bool:
        return self._limits.compact_extents_min > 0 and self._limits.compact_extent_bytes_max > 0

    def applied(self, command: Command, outcome: Outcome, now: Milliseconds) -> None:
        """Note who has more extents now."""
        if not self.is_on:
            return
        match command:
            case CommitObject():
                self._committed(command, now)
            case Promote():
                into = outcome.into if isinstance(outcome, Promotion) else ""
                # Asked for again it is answered as before, whatever became of the parent.
                parent = self._replica.forest.names.get(into)
                if parent is not None:
                    self._note(parent.id)
            case SwapExtents():
                broker, _ = self._out.get(command.log, ("", 0))
                if broker.startswith(COMPACTOR_PREFIX):
                    # A compactor has many under way, and brokers leave the log to it meanwhile.
                    if broker == command.broker:
                        self._give(command.log, broker, now)
                # One that names nothing couldn't be written: not at once again.
                elif broker == command.broker and command.extents:
                    del self._out[command.log]
                    self._note(command.log)
            case _:
                pass  # no other command changes which extents are small

    def give_to(self, log: Log, compactor: str, now: Milliseconds) -> None:
        """Brokers leave the log's extents alone for a while. Raises Unavailable where another
        compactor copies them: one of the two would copy in vain.
        """
        assert compactor.startswith(COMPACTOR_PREFIX), "a broker is asked by letters"
        other, until = self._out.get(log.id, ("", 0))
        taken = other.startswith(COMPACTOR_PREFIX) and other != compactor and until > now
        if taken and other in self._replica.brokers:
            reason = f"{other} copies its extents, until {self._limits.compact_wait_ms} ms after it"
            raise Unavailable(f"copies of {log.name}", f"{reason} last asked or swapped")
        self._give(log.id, compactor, now)

    def letters(self, now: Milliseconds) -> list[Send]:
        """What to ask brokers for, as far as they have room."""
        if not self.is_on:
            return []
        self._look_around(now)
        letters: list[Send] = []
        free, scanned = self._free(), 0
        for _ in range(min(SEARCHES_MAX, len(self._ready))):
            if not free or scanned >= SCANNED_MAX:
                break
            id = self._ready.popleft()
            self._noted.discard(id)
            log = self._replica.forest.logs.get(id)
            if log is None or id in self._out:
                continue
            before = now - self._limits.compact_age_ms
            found = find(self._replica, log, self._searched.get(id, 0), before, self._limits)
            self._searched[id] = found.since
            scanned += found.scanned
            if found.copy is not None:
                broker = free.popleft()
                self._asked += 1
                self._give(id, broker, now)
                letters.append(Send(broker, found.copy))
            elif found.scanned >= SCANNED_MAX:
                self._note(id)
            elif self._replica.forest.settled(log)[1] is not None:
                self._later.append((now + self._limits.compact_age_ms, id))
        self.is_behind = self._sweeping or bool(self._ready and free)
        return letters

    def _committed(self, command: CommitObject, now: Milliseconds) -> None:
        assert self.is_on
        fresh, least = self._fresh, self._limits.compact_extents_min
        for row in command.rows:
            count = fresh.get(row.log, 0) + 1
            if count < least:
                fresh[row.log] = count
            else:
                fresh.pop(row.log, None)
                self._later.append((now + self._limits.compact_age_ms, row.log))

    def _give(self, log: LogId, copier: str, now: Milliseconds) -> None:
        """The latest is the last one: they are looked at in the order of their times."""
        assert copier, "a broker or a compactor"
        self._out.pop(log, None)
        self._out[log] = (copier, now + self._limits.compact_wait_ms)

    def _note(self, log: LogId) -> None:
        if log not in self._noted:
            self._noted.add(log)
            self._ready.append(log)
            assert len(self._ready) == len(self._noted)

    def _look_around(self, now: Milliseconds) -> None:
        assert self.is_on
        while self._later and self._later[0][0] < now:
            self._note(self._later.popleft()[1])
        logs, least = self._replica.forest.logs, self._limits.compact_extents_min
        swept = [*islice(self._sweep, SWEPT_MAX)]
        self._sweeping = bool(swept)
        for id in swept:
            log = logs.get(id)
            if log is not None and len(log.index) >= least:
                self._note(id)
        for id, (_, until) in list(self._out.items()):
            if until > now:
                break
            del self._out[id]
            self._note(id)
        for remembered in (self._fresh, self._searched):
            if len(remembered) > 2 * len(logs) + SWEPT_MAX:
                for id in [id for id in remembered if id not in logs]:
                    del remembered[id]

    def _free(self) -> deque[str]:
        """Brokers with room, each as often as it has; another comes first after every letter."""
        busy = [broker for broker, _ in self._out.values()]
        seats = self._replica.placement.seats
        names = sorted(name for name, seat in seats.items() if seat.state == READY)
        start = self._asked % max(1, len(names))
        free: deque[str] = deque()
        for room in range(IN_HAND_MAX):
            free.extend(name for name in names[start:] + names[:start] if busy.count(name) <= room)
        assert len(free) <= IN_HAND_MAX * len(names)
        return free
