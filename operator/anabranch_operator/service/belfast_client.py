"""Belfast logs as the operator asks them: by their own client, a session for each."""

from collections.abc import Callable
from typing import TypeVar
from urllib.parse import quote, urlencode

from anabranch.client.belfast.link import Link
from anabranch.client.session.endpoint import belfast_endpoint
from anabranch.client.session.settings import Settings
from anabranch.core.belfast.protocol.messages import Done, Inspect, Join, Leave, Status, ToServer
from anabranch.core.errors import AnabranchError
from anabranch.core.errors.refused import Refused
from anabranch_operator.plan.engine.actions import JoinShard, LeaveShard
from anabranch_operator.plan.engine.events import Outcome, Visit, Visited

VISIT_S = 5.0
"""Longer than an election of the group's."""
MOVE_S = 10.0

A = TypeVar("A")


class Visitor:
    """A session that fails is begun anew: whom to trust, and as who, may have changed."""

    def __init__(
        self, name: str, token_file: str, ca: str, told: Callable[[str, str], None]
    ) -> None:
        """`told`: of each request and its outcome, for the counters."""
        self._settings = Settings(client=name)
        self._token_file, self._ca = token_file, ca
        self._told = told
        self._links: dict[str, Link] = {}

    def close(self) -> None:
        for link in self._links.values():
            link.close()
        self._links.clear()

    async def visit(self, visit: Visit) -> Visited:
        try:
            status = await self._ask(visit.url, Inspect(), Status, "Visit", VISIT_S)
        except AnabranchError as error:
            return Visited(visit.ref, visit.uid, why=error.message)
        return Visited(visit.ref, visit.uid, status)

    async def move(self, action: JoinShard | LeaveShard) -> Outcome:
        shard, joins = action.shard, isinstance(action, JoinShard)
        message = Join(shard) if joins else Leave(shard)
        try:
            await self._ask(action.url, message, Done, type(action).__name__, MOVE_S)
        except AnabranchError as error:
            # Why it was refused until time ran out says more than that time ran out.
            why = error.__cause__
            return Refused.of(why if isinstance(why, AnabranchError) else error)
        return None

    async def _ask(
        self, url: str, message: ToServer, answer: type[A], what: str, timeout_s: float
    ) -> A:
        try:
            found = await self._link(url).ask(message, answer, what, timeout_s)
        except AnabranchError as error:
            self._told(what, error.code)
            self._forget(url)
            raise
        self._told(what, "done")
        return found

    def _link(self, url: str) -> Link:
        link = self._links.get(url)
        if link is None:
            link = self._links[url] = Link(belfast_endpoint(url + self._query(url)), self._settings)
            link.start()
        return link

    def _query(self, url: str) -> str:
        given = {"token_file": self._token_file}
        if url.startswith("belfasts:"):
            given["ca"] = self._ca
        told = {name: each for name, each in given.items() if each}
        return f"?{urlencode(told, quote_via=quote)}" if told else ""

    def _forget(self, url: str) -> None:
        link = self._links.pop(url, None)
        if link is not None:
            link.close()
