"""Clients that ask for the position of an append wait until it is stable (LazyLog, 5.5)."""

import heapq

from anabranch.core.errors import Overloaded, RequestForgotten
from anabranch.core.machine import Reply, Token
from anabranch.core.sequencing.ids import AppendId
from anabranch.core.sequencing.member import Member
from anabranch.core.sequencing.messages import Elsewhere, FindPosition, Found
from anabranch.core.types import Position


class Positions:
    """At the leader: a question may come before its append."""

    def __init__(self, member: Member) -> None:
        self._member = member
        self._askers: dict[AppendId, list[Token]] = {}
        """Of appends that aren't ordered."""
        self._ordered: list[tuple[Position, AppendId, list[Token]]] = []
        """Of appends that aren't stable: a heap."""
        self._live: dict[Token, AppendId] = {}

    def __len__(self) -> int:
        return len(self._live)

    def find(self, token: Token, message: FindPosition, stable: Position) -> None:
        """Raises what stands in the way."""
        known, id = self._member.state.known, message.id
        position = known.position(id)
        if position is not None and position < stable:
            self._member.effects.append(Reply(token, Found(position)))
            return
        if id not in self._member.state.ring and known.forgotten(id):
            raise RequestForgotten("an append whose producer asked for no such position any more")
        limit = self._member.limits.waits_max
        if len(self._live) >= limit:
            raise Overloaded("clients that wait for positions", limit, "waits_max")
        self._live[token] = id
        if position is None:
            self._askers.setdefault(id, []).append(token)
        else:
            heapq.heappush(self._ordered, (position, id, [token]))

    def ordered(self, id: AppendId, position: Position) -> None:
        tokens = self._askers.pop(id, None)
        if tokens is not None:
            heapq.heappush(self._ordered, (position, id, tokens))

    def stable(self, stable: Position) -> None:
        waiting = self._ordered
        while waiting and waiting[0][0] < stable:
            position, _, tokens = heapq.heappop(waiting)
            self._reply(tokens, Found(position))

    def drop(self, token: Token) -> None:
        id = self._live.pop(token, None)
        tokens = self._askers.get(id) if id is not None else None
        if id is not None and tokens is not None and token in tokens:
            tokens.remove(token)
            if not tokens:
                del self._askers[id]

    def end(self) -> None:
        """Another leader may know."""
        for tokens in [*self._askers.values(), *(each[2] for each in self._ordered)]:
            self._reply(tokens, Elsewhere(""))
        self._askers.clear()
        self._ordered.clear()
        assert not self._live

    def _reply(self, tokens: list[Token], message: Found | Elsewhere) -> None:
        for token in tokens:
            if token in self._live:
                del self._live[token]
                self._member.effects.append(Reply(token, message))
