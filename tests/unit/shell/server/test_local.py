"""A caller inside the process: calls, streams, refusals, and what it leaves behind."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing, asynccontextmanager
from typing import Any

import pytest
from tests.unit.shell.nodes import Puppet, run, until

from anabranch.core.belfast.ledger.windows import Run
from anabranch.core.belfast.protocol import messages as belfast
from anabranch.core.belfast.protocol.clients import BELFAST
from anabranch.core.bolt.protocol import messages as bolt
from anabranch.core.bolt.protocol.clients import BOLT
from anabranch.core.bolt.protocol.queries import Census
from anabranch.core.errors import ShardAway, UnknownLog
from anabranch.core.errors.refused import Refused
from anabranch.core.machine import Effect, Event, Gone, Replies, Reply, Request, Requests
from anabranch.core.wire.client_protocol import ClientProtocol
from anabranch.core.wire.session import Credit
from anabranch.shell.runtime.clock import Clock
from anabranch.shell.runtime.driver import Host
from anabranch.shell.server.local import Local
from anabranch.shell.telemetry.log import Log

CENSUS = Census("c", 1, 0, 0, 0, 0, 0)


def delivered(*batches: bytes) -> belfast.Delivered:
    return belfast.Delivered(1, 10, False, (Run(0, 1),), batches, ((0, 1),) * len(batches))


class Room:
    """A machine, and a caller beside it."""

    def __init__(self, host: Host, puppet: Puppet, local: Local) -> None:
        self.host, self.puppet, self.local = host, puppet, local

    def asked(self, kind: type) -> list[Request]:
        events = [each for each in self.puppet.events if isinstance(each, Request)]
        return [each for each in events if isinstance(each.message, kind)]

    @property
    def forgotten(self) -> list[int]:
        return [
            token for each in self.puppet.events if isinstance(each, Gone) for token in each.tokens
        ]

    def push(self, token: int, message: Any) -> None:
        """The machine says something by itself, at the next event."""
        self.puppet.rule = lambda _: [Reply(token, message)]
        self.host.post("n", Requests([], []))


@asynccontextmanager
async def room(protocol: ClientProtocol) -> AsyncGenerator[Room]:
    clock, puppet = Clock(), Puppet()
    host = Host("c", None, None, now=clock.now, log=Log(clock.now))
    host.start({"n": puppet})
    yield Room(host, puppet, Local(host, "n", protocol))
    await host.stop()


def test_calls_at_once_get_each_its_own_answer() -> None:
    def answer(event: Event) -> Sequence[Effect]:
        match event:
            case Request(token, belfast.Leave(shard)):
                return [Reply(token, belfast.Elsewhere(shard))]
            case _:
                return []

    async def scene() -> None:
        async with room(BELFAST) as here:
            here.puppet.rule = answer
            calls = [here.local.call(belfast.Leave(f"s{n}")) for n in range(50)]
            answers = await asyncio.gather(*calls)
            assert [each.node for each in answers] == [f"s{n}" for n in range(50)]

    run(scene())


@pytest.mark.parametrize(
    ("protocol", "message", "error"),
    [
        (BOLT, bolt.Describe("orders"), UnknownLog("orders")),
        (BELFAST, belfast.Inspect(), ShardAway("a", "it is away")),
    ],
)
def test_a_refusal_is_raised_as_the_error_that_it_is(
    protocol: ClientProtocol, message: Any, error: UnknownLog | ShardAway
) -> None:
    async def scene() -> None:
        async with room(protocol) as here:
            here.puppet.rule = lambda event: (
                [Reply(event.token, Refused.of(error))] if isinstance(event, Request) else []
            )
            with pytest.raises(type(error)) as refused:
                await here.local.call(message)
            assert refused.value.facts == error.facts
            assert here.forgotten == [], "what was answered needn't be forgotten"

    run(scene())


def test_who_stops_waiting_is_forgotten_by_the_machine_and_hears_no_late_answer() -> None:
    async def scene() -> None:
        async with room(BOLT) as here:
            call = asyncio.ensure_future(here.local.call(bolt.Survey()))
            await until(lambda: bool(here.asked(bolt.Survey)))
            (asked,) = here.asked(bolt.Survey)
            call.cancel()
            await until(lambda: here.forgotten == [asked.token])
            here.push(asked.token, CENSUS)
            here.puppet.rule = lambda event: (
                [Reply(event.token, CENSUS)] if isinstance(event, Request) else []
            )
            assert await here.local.call(bolt.Survey()) == CENSUS
            assert call.cancelled()

    run(scene())


def test_answers_that_come_together_reach_everybody() -> None:
    async def scene() -> None:
        async with room(BOLT) as here:
            calls = [asyncio.ensure_future(here.local.call(bolt.Survey())) for _ in range(5)]
            await until(lambda: len(here.asked(bolt.Survey)) == 5)
            tokens = [each.token for each in here.asked(bolt.Survey)]
            here.puppet.rule = lambda _: [Replies(tokens, [CENSUS] * 5)]
            here.host.post("n", Requests([], []))
            assert await asyncio.gather(*calls) == [CENSUS] * 5

    run(scene())


def test_credit_is_given_for_what_was_taken_and_not_before() -> None:
    async def scene() -> None:
        async with (
            room(BELFAST) as here,
            aclosing(here.local.stream(belfast.Subscribe("a", 0))) as stream,
        ):
            first = asyncio.ensure_future(anext(stream))
            await until(lambda: bool(here.asked(belfast.Subscribe)))
            (asked,) = here.asked(belfast.Subscribe)
            here.push(asked.token, delivered(b"12345", b"678"))
            assert (await first).batches == (b"12345", b"678")
            here.puppet.rule = lambda _: []
            assert here.asked(Credit) == [], "the caller hasn't come for more"
            second = asyncio.ensure_future(anext(stream))
            await until(lambda: bool(here.asked(Credit)))
            (credit,) = [each.message for each in here.asked(Credit)]
            assert (credit.subscription, credit.bytes) == (asked.token, 8)
            here.push(asked.token, belfast.Confirmed(1, 7))
            assert await second == belfast.Confirmed(1, 7)

    run(scene())


def test_a_stream_that_is_refused_raises_behind_what_was_pushed() -> None:
    async def scene() -> None:
        async with room(BELFAST) as here:
            here.puppet.rule = lambda event: (
                [
                    Reply(event.token, belfast.Confirmed(1, 3)),
                    Reply(event.token, Refused.of(ShardAway("a", "it is about to end"))),
                ]
                if isinstance(event, Request)
                else []
            )
            stream = here.local.stream(belfast.Subscribe("a", 0))
            assert await anext(stream) == belfast.Confirmed(1, 3)
            with pytest.raises(ShardAway, match="about to end"):
                await anext(stream)
            assert here.forgotten == [], "the machine has ended it itself"

    run(scene())


def test_a_stream_that_is_left_is_forgotten_by_the_machine() -> None:
    async def scene() -> None:
        async with room(BELFAST) as here:
            here.puppet.rule = lambda event: (
                [Reply(event.token, belfast.Confirmed(1, 3))] if isinstance(event, Request) else []
            )
            async with aclosing(here.local.stream(belfast.Subscribe("a", 0))) as stream:
                await anext(stream)
            (asked,) = here.asked(belfast.Subscribe)
            await until(lambda: here.forgotten == [asked.token])

    run(scene())


def test_closing_cancels_what_waits_and_tells_the_machine_at_once() -> None:
    async def scene() -> None:
        async with room(BOLT) as here:
            calls = [asyncio.ensure_future(here.local.call(bolt.Survey())) for _ in range(3)]
            await until(lambda: len(here.asked(bolt.Survey)) == 3)
            here.local.close()
            await asyncio.gather(*calls, return_exceptions=True)
            assert all(each.cancelled() for each in calls)
            tokens = [each.token for each in here.asked(bolt.Survey)]
            await until(lambda: sorted(here.forgotten) == sorted(tokens))

    run(scene())


def test_what_no_subscription_is_told_is_a_fault_of_ours() -> None:
    async def scene() -> None:
        async with room(BELFAST) as here:
            stream = here.local.stream(belfast.Subscribe("a", 0))
            waiting = asyncio.ensure_future(anext(stream))
            await until(lambda: bool(here.asked(belfast.Subscribe)))
            with pytest.raises(AssertionError, match="a subscription is never told"):
                here.local.answer(1, belfast.Done())
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)

    run(scene())
