"""Replicas of shards get the group's entries as they are committed, and again what they missed."""

from dataclasses import dataclass
from typing import Protocol

from anabranch.core.belfast.ledger.ledger import Ledger, Standing
from anabranch.core.belfast.protocol.letters import Decided, Restored
from anabranch.core.belfast.sequencer.counters import SequencerCounters
from anabranch.core.machine import Effect, Send

ENTRIES_MAX = 1_000
"""In one letter."""


class Entries(Protocol):
    """What the feed needs of the consensus."""

    @property
    def term(self) -> int: ...

    def entries(self, after: int, count_max: int) -> tuple[int, list[bytes]] | None: ...


@dataclass(slots=True)
class _Reader:
    """A replica that asks for entries."""

    sent: int
    """The last entry that was sent to it."""
    before: int = 0
    """The same, when it was last heard of: what it hasn't got by now is lost."""


class Feed:
    """Of a leader. Primaries are told without asking; who is behind says so (`Alive.applied`)."""

    def __init__(
        self,
        log: Entries,
        ledger: Ledger,
        applied: int,
        effects: list[Effect],
        counters: SequencerCounters,
    ) -> None:
        self.applied = applied
        """The last entry that the ledger holds."""
        self._log = log
        self._ledger = ledger
        self._effects = effects
        self._counters = counters
        self._readers: dict[str, _Reader] = {}
        self._fresh: list[bytes] = []

    def committed(self, index: int, entry: bytes) -> None:
        assert index == self.applied + 1, "entries are committed one after the other"
        self.applied = index
        self._fresh.append(entry)

    def asked(self, node: str, applied: int) -> None:
        """It holds the entries up to here."""
        reader = self._readers.get(node)
        if reader is None:
            reader = self._readers[node] = _Reader(applied)
        elif applied < reader.before:
            reader.sent = applied
        reader.before = reader.sent = max(reader.sent, applied)
        if reader.sent < self.applied - len(self._fresh):
            self._catch_up(node, reader)

    def linked(self, node: str) -> None:
        """What was sent to it may be lost: it is believed when it next says what it holds."""
        self._readers.pop(node, None)

    def flush(self) -> None:
        """End of a step: what it has committed goes to all primaries."""
        if not self._fresh:
            return
        first = self.applied - len(self._fresh) + 1
        letter = Decided(self._log.term, first, self._fresh)
        self._fresh = []
        for member in self._ledger.members.values():
            if member.standing in {Standing.LEFT, Standing.FAILED}:
                continue
            reader = self._readers.get(member.primary)
            if reader is None or reader.sent == first - 1:
                self._effects.append(Send(member.primary, letter))
                if reader is not None:
                    reader.sent = self.applied

    def _catch_up(self, node: str, reader: _Reader) -> None:
        found = self._log.entries(reader.sent, ENTRIES_MAX)
        if found is None:
            letter = Restored(term=self._log.term, index=self.applied, image=self._ledger.image())
            self._effects.append(Send(node, letter))
            reader.sent = self.applied
            self._counters.restored += 1
            return
        first, entries = found
        assert first == reader.sent + 1, "a reader gets every entry"
        if entries:
            self._effects.append(Send(node, Decided(self._log.term, first, entries)))
            reader.sent = first + len(entries) - 1
