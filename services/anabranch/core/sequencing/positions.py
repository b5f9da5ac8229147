"""Clients that ask for the position of an append wait until it is stable (LazyLog, 5.5)."""

import heapq
from collections.abc import Iterable

from anabranch.core.askers import asker_of
from anabranch.core.budget import Budget
from anabranch.core.errors import Overloaded, RequestForgotten
from anabranch.core.machine import Reply, Token
from anabranch.core.sequencing.member import Member
from anabranch.core.sequencing.protocol.ids import AppendId
from anabranch.core.sequencing.protocol.messages import Elsewhere, FindPosition, Found
from anabranch.core.types import Position

_Askers = dict[Token, None]
"""Many may ask for one append, and leave together: each leaves at the same small cost."""


class Positions:
    """At the leader: a question may come before its append."""

    def __init__(self, member: Member) -> None:
        self._member = member
        self._unordered: dict[AppendId, _Askers] = {}
        """Of appends that aren't ordered, each with somebody who asks."""
        self._ordered: dict[AppendId, _Askers] = {}
        """Of appends that aren't stable. Askers may all have left: each id is in the heap once."""
        self._places: list[tuple[Position, AppendId]] = []
        """Where these are: a heap."""
        self._live: dict[Token, AppendId] = {}
        self._room = Budget(member.limits.waits_max)
        """Shared by those who ask: an append that is asked for may never come."""

    def __len__(self) -> int:
        return len(self._live)

    def find(self, token: Token, message: FindPosition, stable: Position) -> None:
        """Raises what stands in the way."""
        assert token not in self._live, "each request has a token of its own"
        known, id = self._member.state.known, message.id
        position = known.position(id)
        if position is not None and position < stable:
            self._member.effects.append(Reply(token, Found(position)))
            return
        if id not in self._member.state.ring and known.forgotten(id):
            raise RequestForgotten("an append whose producer asked for no such position any more")
        if not self._room.take(asker_of(token), 1):
            what = "this client's share of questions for positions"
            raise Overloaded(what, self._room.limit, "waits_max")
        self._live[token] = id
        if position is None:
            self._unordered.setdefault(id, {})[token] = None
        else:
            self._place(id, position, (token,))

    def ordered(self, id: AppendId, position: Position) -> None:
        tokens = self._unordered.pop(id, None)
        if tokens is not None:
            self._place(id, position, tokens)

    def stable(self, stable: Position) -> None:
        places = self._places
        while places and places[0][0] < stable:
            position, id = heapq.heappop(places)
            assert id in self._ordered, "each id is in the heap once"
            self._reply(self._ordered.pop(id), Found(position))

    def drop(self, token: Token) -> None:
        id = self._live.pop(token, None)
        if id is None:
            return
        self._room.give(asker_of(token), 1)
        tokens = self._unordered.get(id, {})
        if token not in tokens:
            del self._ordered[id][token]
            return
        del tokens[token]
        if not tokens:
            del self._unordered[id]

    def end(self) -> None:
        """Another leader may know."""
        self._reply(list(self._live), Elsewhere(""))
        self._unordered.clear()
        self._ordered.clear()
        self._places.clear()
        assert not self._live

    def _place(self, id: AppendId, position: Position, tokens: Iterable[Token]) -> None:
        assert position >= 0, "it is ordered"
        askers = self._ordered.get(id)
        if askers is None:
            askers = self._ordered[id] = {}
            heapq.heappush(self._places, (position, id))
        askers.update(dict.fromkeys(tokens))

    def _reply(self, tokens: Iterable[Token], message: Found | Elsewhere) -> None:
        for token in tokens:
            del self._live[token]
            self._room.give(asker_of(token), 1)
            self._member.effects.append(Reply(token, message))
