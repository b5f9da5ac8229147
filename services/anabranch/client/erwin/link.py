"""The link of an Erwin session: how programs ask, append, read and subscribe."""
# ruff: noqa: ASYNC109  # a timeout here travels with the request: its outcome is told, not cut off

import asyncio
from collections.abc import Sequence
from typing import TypeVar, cast

from anabranch.client.driver import link
from anabranch.client.erwin.call import Call, ShardCall
from anabranch.client.erwin.dialect import Codecs, FromNode, NodeCodec, ToNode
from anabranch.client.erwin.pledge import Pledge
from anabranch.client.erwin.session import Session
from anabranch.client.erwin.subscriber import Subscriber
from anabranch.client.erwin.tail import TailCall
from anabranch.client.session.endpoint import Endpoint
from anabranch.client.session.settings import Settings
from anabranch.core.errors import (
    DeadlineExceeded,
    OutcomeUnknown,
    PositionPending,
    RequestForgotten,
    Retry,
)
from anabranch.core.erwin.protocol import codec as of_shards
from anabranch.core.erwin.protocol.messages import Read, Records
from anabranch.core.sequencing.protocol import codec as of_sequencers
from anabranch.core.sequencing.protocol.messages import FindPosition, Found, Tail, ToSequencer
from anabranch.core.types import Milliseconds, Position
from anabranch.shell.runtime.randomness import randbits

CODECS = Codecs(cast("NodeCodec", of_sequencers.CODEC), cast("NodeCodec", of_shards.CODEC))

_FIND = "an append's position"
_LOST = (
    "it was acknowledged in a view whose members lost all that they held in memory, and may not "
    "have been ordered before that"
)

T = TypeVar("T")


class Link(link.Link[ToNode, FromNode]):
    def __init__(
        self,
        endpoint: Endpoint,
        settings: Settings,
        cluster: str | None = None,
        nodes: Sequence[str] | None = None,
    ) -> None:
        """`cluster`, `nodes`: of a log that a service has named; else they are the endpoint's."""
        named = list(map(str, endpoint.addresses)) if nodes is None else nodes
        self.session = Session(
            endpoint.cluster if cluster is None else cluster, settings, randbits, named, CODECS
        )
        super().__init__(endpoint, self.session)

    async def ask(
        self, message: ToSequencer, answer: type[T], what: str, timeout: float | None
    ) -> T:
        """Of the leader, or of any sequencing replica."""
        call = Call(message, what, self.milliseconds(timeout))
        self.put(call)
        return await self.answered(call, answer)

    async def read(
        self, message: Read, what: str, timeout_ms: Milliseconds, wait_ms: Milliseconds = 0
    ) -> Records:
        """Of a shard's primary."""
        call = ShardCall(message, what, timeout_ms, wait_ms)
        self.put(call)
        return await self.answered(call, Records)

    async def tail(self, timeout: float | None) -> Position:
        """How many records are durable, by all members of the view."""
        call = TailCall(self.milliseconds(timeout))
        self.put(call)
        return (await self.answered(call, Tail)).tail

    async def position(self, pledge: Pledge, log: str, timeout: float | None) -> Position:
        """Of the first record of a batch that this log has acknowledged, once it is final."""
        limit_ms = self.milliseconds(timeout)
        pledge.wants_position = True
        try:
            async with asyncio.timeout(limit_ms / 1_000):
                while pledge.first is None:
                    self._check_view(pledge)
                    await self._find(pledge, limit_ms)
                return pledge.first
        except (TimeoutError, DeadlineExceeded):
            late = PositionPending(log)
        except RequestForgotten as forgotten:
            late = forgotten
        self._check_view(pledge)
        raise late

    def _check_view(self, pledge: Pledge) -> None:
        """Members forget the ids of a lost view: a question for one of them has no answer."""
        if pledge.view <= self.session.whereabouts.lost_view:
            raise OutcomeUnknown("an append", _LOST)

    async def arrivals(self, subscriber: Subscriber) -> None:
        """Wait until there is something to take; raises why nothing more comes."""
        await self.arrival(subscriber, subscriber.ready)

    async def _find(self, pledge: Pledge, limit_ms: Milliseconds) -> None:
        """One question for all who want the position of a record of this batch."""
        assert pledge.id is not None, "what is acknowledged has an id"
        finding = pledge.finding
        if finding is None:
            finding = pledge.finding = Call(FindPosition(pledge.id), _FIND, limit_ms)
            finding.waiter = asyncio.get_running_loop().create_future()
            self.put(finding)
        if not finding.finished:
            # Whoever waits may leave, and others go on.
            await asyncio.shield(cast("asyncio.Future[None]", finding.waiter))
        if pledge.finding is finding:
            pledge.finding = None
        if isinstance(finding.answer, Found):
            pledge.first = finding.answer.position
            self.session.appender.release(pledge)
        elif isinstance(finding.error, RequestForgotten):
            raise RequestForgotten("this receipt")
        elif finding.error is not None and (
            self.session.ended or not isinstance(finding.error, Retry)
        ):
            # A closed client answers each question at once: asking again would never end.
            raise finding.error
