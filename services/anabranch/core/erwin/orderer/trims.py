"""Requests to trim the log, until every shard has journaled what they ask for."""

from anabranch.core.errors import AnabranchError, Overloaded, TrimTooFar
from anabranch.core.machine import Effect, Reply, Token
from anabranch.core.sequencing.protocol.messages import Done, Elsewhere
from anabranch.core.types import Position

TRIMS_WAITING_MAX = 1_000


class Trims:
    def __init__(self, effects: list[Effect]) -> None:
        self._effects = effects
        self._waiting: dict[Token, Position] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    def ask(self, token: Token, position: Position, *, ordered: Position) -> AnabranchError | None:
        """Say what stands in the way, or answer when shards have done it.

        What is ordered will be stable. A leader that was restarted has yet to learn what was stable
        before, which readers may know.
        """
        assert token not in self._waiting
        if position > ordered:
            return TrimTooFar(position, ordered)
        if len(self._waiting) >= TRIMS_WAITING_MAX:
            return Overloaded("trims waiting for shards", TRIMS_WAITING_MAX, "trims_waiting_max")
        self._waiting[token] = position
        return None

    def begun(self, stable: Position) -> Position:
        """What shards may be told to trim by now. Only what is stable can be trimmed: other
        positions may yet be bound to other records.
        """
        return max((each for each in self._waiting.values() if each <= stable), default=0)

    def done(self, trimmed: Position) -> int:
        """All shards have journaled this trim; returns how many requests that answers."""
        done = [token for token, position in self._waiting.items() if position <= trimmed]
        for token in done:
            del self._waiting[token]
            self._effects.append(Reply(token, Done()))
        return len(done)

    def gone(self, token: Token) -> None:
        self._waiting.pop(token, None)

    def abandon(self, leader: str) -> None:
        """The node orders no more: who still waits asks the leader again."""
        for token in self._waiting:
            self._effects.append(Reply(token, Elsewhere(leader)))
        self._waiting.clear()
