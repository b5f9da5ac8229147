"""A subscription event by event, as programs hold it: with an event loop, and without."""

import asyncio
from collections.abc import Iterator
from typing import cast

import pytest
from tests.unit.client.belfast.world import World, settle

from anabranch.client.belfast import sync
from anabranch.client.belfast.events import Events
from anabranch.client.belfast.link import Link
from anabranch.client.belfast.subscriber import Subscriber
from anabranch.client.driver.handover import Handover
from anabranch.client.driver.loop import LoopThread
from anabranch.client.session.effects import Opened, Taken
from anabranch.client.session.records import Deliver, Event, LogRecord
from anabranch.core.errors import BadRequest


class StillLink:
    """To a log of four records, all of which have come and are confirmed."""

    def __init__(self) -> None:
        self.world = World(("a",))
        self.world.publish([("a", 2)], 2)

    def open(self, subscriber: Subscriber) -> None:
        self.world.give(Opened(subscriber))
        settle(self.world)
        self.world.fill("a", [b"0", b"1", b"2", b"3"])
        self.world.cut(4)
        settle(self.world)

    async def arrivals(self, subscriber: Subscriber, *, records: bool) -> None:
        assert subscriber.ready(records=records), "more is waited for than there is"

    def taken(self, subscriber: Subscriber) -> None:
        self.world.give(Taken(subscriber))

    def leave(self, subscriber: Subscriber) -> None:
        pass


class DrippingLink(StillLink):
    """The four come one at a time, each when it is waited for."""

    def open(self, subscriber: Subscriber) -> None:
        self.world.give(Opened(subscriber))
        settle(self.world)

    async def arrivals(self, subscriber: Subscriber, *, records: bool) -> None:
        while not subscriber.ready(records=records):
            self.world.fill("a", [b"%d" % self.world.confirmed])
            self.world.cut(self.world.confirmed + 1)
            settle(self.world)


def subscription() -> Events:
    return Events(cast(Link, StillLink()), 0, None, None, speculative=True)


def position(event: Event) -> int:
    assert isinstance(event, Deliver)
    return event.record.position


def test_where_a_program_would_go_on_is_never_beyond_what_it_was_given() -> None:
    async def followed() -> list[tuple[int, int]]:
        found: list[tuple[int, int]] = []
        events = subscription()
        async for event in events:
            found.append((position(event), events.final))
            if len(found) == 4:
                break
        return found

    assert asyncio.run(followed()) == [(0, 1), (1, 2), (2, 3), (3, 4)]


@pytest.fixture
def thread() -> Iterator[LoopThread]:
    thread = LoopThread()
    yield thread
    if not thread.closed:
        thread.stop()


def test_nor_is_it_without_an_event_loop(thread: LoopThread) -> None:
    events = sync.Events(Handover(thread), subscription())
    found = [(position(event), events.final) for _, event in zip(range(4), events, strict=False)]
    assert found == [(0, 1), (1, 2), (2, 3), (3, 4)]


def test_where_one_loop_over_a_subscription_was_left_the_next_goes_on(thread: LoopThread) -> None:
    events = sync.Events(Handover(thread), subscription())
    for event in events:
        assert position(event) == 0
        break
    assert [position(event) for event in events.take()] == [1, 2, 3]
    thread.stop()
    assert events.final == 4, "it can be asked after the end"


def test_a_where_that_raises_passes_nothing_over() -> None:
    def refuse(record: LogRecord) -> bool:
        return 1 // (2 - record.position) > -2

    async def followed() -> int:
        events = Events(cast(Link, StillLink()), 0, refuse, None, speculative=True)
        with pytest.raises(ZeroDivisionError):
            await events.take()
        with pytest.raises(BadRequest, match="subscribe again from `final`"):
            await events.take()
        return events.final

    assert asyncio.run(followed()) == 0, "the two before the third were not given out"


def test_a_where_that_leaves_out_all_that_came_waits_for_more() -> None:
    def late(record: LogRecord) -> bool:
        return record.position >= 2

    async def taken() -> list[Event]:
        events = Events(cast(Link, DrippingLink()), 0, late, None, speculative=False)
        return await events.take()

    assert [position(event) for event in asyncio.run(taken())] == [2]


def test_it_waits_no_longer_than_until_everything_was_looked_at() -> None:
    async def taken() -> tuple[list[Event], int]:
        link = cast(Link, DrippingLink())
        events = Events(link, 0, lambda _: False, None, speculative=False, until=4)
        return await events.take(), events.final

    assert asyncio.run(taken()) == ([], 4)
