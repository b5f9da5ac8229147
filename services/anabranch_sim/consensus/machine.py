"""A member of a consensus group as a machine: its state is the list of all that was committed."""

from collections.abc import Callable

import msgspec

from anabranch.core.alarms import Alarms
from anabranch.core.consensus.consensus import Consensus, ConsensusConfig
from anabranch.core.consensus.disk import Recovered
from anabranch.core.machine import (
    Drain,
    Effect,
    Effects,
    Event,
    Linked,
    Persisted,
    PersistFailed,
    Received,
    Rest,
    SnapshotSaved,
    TimerFired,
)
from anabranch.core.types import Milliseconds, Nanoseconds

Committed = Callable[[int, bytes], None]


class GroupMember:
    """While it leads it proposes an entry now and then."""

    def __init__(
        self,
        config: ConsensusConfig,
        propose_ms: Milliseconds,
        on_commit: Committed,
        on_lead: Callable[[int], None],
    ) -> None:
        self.applied: list[bytes] = []
        self._propose_ms = propose_ms
        self._on_commit = on_commit
        self._on_lead = on_lead
        self._effects: list[Effect] = []
        self._alarms = Alarms(self._effects)
        self._draining = False
        self.consensus = Consensus(config, self._effects, self._alarms)
        self.consensus.on_commit = self._commit
        self.consensus.on_restore = self._restore
        self.consensus.on_elected = self._lead
        self.consensus.take_image = lambda: msgspec.msgpack.encode(self.applied)

    def recover(self, recovered: Recovered) -> None:
        self.consensus.recover(recovered)

    def start(self, now: Nanoseconds) -> Effects:
        self._alarms.now = now
        self.consensus.start()
        return self._settle()

    def step(self, now: Nanoseconds, event: Event) -> Effects:
        self._alarms.now = now
        match event:
            case Received(sender, letter):
                self.consensus.received(sender, letter)
            case TimerFired():
                self._alarms.ring()
            case Persisted(last):
                self.consensus.persisted(last)
            case PersistFailed(error):
                self.consensus.persist_failed(error)
            case SnapshotSaved(index):
                self.consensus.snapshot_saved(index)
            case Linked(node):
                self.consensus.linked(node)
            case Drain():
                self._draining = True
                self.consensus.resign()
            case _:
                raise AssertionError(event)
        return self._settle()

    def _settle(self) -> Effects:
        self.consensus.settle()
        if self._draining and not self.consensus.leads:
            self._draining = False
            self._effects.append(Rest())
        effects = tuple(self._effects)
        self._effects.clear()
        return effects

    def _commit(self, index: int, entry: bytes) -> None:
        assert index == len(self.applied) + 1, "in order, once, without gaps"
        self.applied.append(entry)
        self._on_commit(index, entry)

    def _restore(self, index: int, image: bytes) -> None:
        self.applied = msgspec.msgpack.decode(image, type=list[bytes])
        assert index == len(self.applied)
        for nth, entry in enumerate(self.applied, 1):
            self._on_commit(nth, entry)

    def _lead(self) -> None:
        self._on_lead(self.consensus.term)
        self._propose(self.consensus.term, 0)

    def _propose(self, term: int, count: int) -> None:
        if self.consensus.leads and self.consensus.term == term:
            self.consensus.propose(f"{self.consensus.node} {term} {count}".encode())
            again = self._propose_ms
            self._alarms.after(again, lambda: self._propose(term, count + 1))
