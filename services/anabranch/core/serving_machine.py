"""The event table of machines that serve clients from a journal: sequencers and shard replicas."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from anabranch.core.alarms import Alarms
from anabranch.core.errors import AnabranchError
from anabranch.core.machine import (
    Drain,
    Effect,
    Effects,
    EntriesRead,
    Event,
    Gone,
    Linked,
    Persisted,
    PersistFailed,
    ReadFailed,
    Received,
    Request,
    Requests,
    SnapshotSaved,
    TimerFired,
    Token,
)


class ServingMachine(ABC):
    """Each kind of event has a method; the parts look once at the end of a step at what came."""

    _alarms: Alarms
    _effects: list[Effect]

    def _take(self, event: Event) -> None:
        match event:
            case Request(token, message):
                self._asked(token, message)
            case Requests(tokens, messages):
                for token, message in zip(tokens, messages, strict=True):
                    self._asked(token, message)
            case Received(sender, letter):
                self._received(sender, letter)
            case Persisted(last):
                self._persisted(last)
            case TimerFired():
                self._alarms.ring()
            case EntriesRead() | ReadFailed():
                self._entries_read(event)
            case PersistFailed(error):
                self._persist_failed(error)
            case SnapshotSaved(index):
                self._snapshot_saved(index)
            case Gone(tokens):
                self._gone(tokens)
            case Linked(node):
                self._linked(node)
            case Drain():
                self._drain()
            case _:
                raise AssertionError(event)

    def _taken(self) -> Effects:
        """The effects of this step."""
        if not self._effects:
            return ()
        effects = tuple(self._effects)
        self._effects.clear()
        return effects

    @abstractmethod
    def _asked(self, token: Token, message: Any) -> None:
        """A client's request."""

    @abstractmethod
    def _received(self, sender: str, letter: Any) -> None:
        """Another node's letter."""

    @abstractmethod
    def _persisted(self, last: int) -> None: ...

    @abstractmethod
    def _persist_failed(self, error: AnabranchError) -> None: ...

    def _entries_read(self, event: EntriesRead | ReadFailed) -> None:
        raise AssertionError(f"this machine reads nothing back: {event}")

    def _snapshot_saved(self, index: int) -> None:
        """The journal knows by itself what it may forget; a machine goes by what it can read."""
        assert index >= 0

    @abstractmethod
    def _gone(self, tokens: Sequence[Token]) -> None:
        """Clients that asked this want no answer any more."""

    @abstractmethod
    def _linked(self, node: str) -> None:
        """There is a new connection to this node."""

    @abstractmethod
    def _drain(self) -> None: ...
