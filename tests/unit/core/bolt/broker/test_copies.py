"""Copies of small extents that the leader asks a broker for, as traces."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from anabranch.core.bolt.broker.copies import QUEUED_MAX, READ_AT_ONCE
from anabranch.core.bolt.protocol.compaction import Copied, Joined, SwapExtents, Swapped
from anabranch.core.bolt.protocol.letters import CopyExtents
from anabranch.core.bolt.protocol.messages import Read
from anabranch.core.errors import BrokerFenced, ObjectMissing, Unavailable
from anabranch.core.errors.refused import Refused
from anabranch.core.machine import Drain, Received
from anabranch.core.records.batch import split
from anabranch.core.records.objects import object_id, read_footer
from anabranch.core.records.set_sum import set_sum


class Scattered:
    """A log of so many extents, each in an object of its own, and the broker that is to copy it."""

    def __init__(self, stage: Any, props: Any, extents: int) -> None:
        self.stage = stage
        self.log = props.LOG
        self.contents = [
            props.Content(b"%d" % turn, b"%d again" % turn, sequence=turn, first=2 * turn)
            for turn in range(extents)
        ]
        self.extents = [
            Copied(content.first, 2, content.object, 0, len(content.bytes))
            for content in self.contents
        ]

    def asked(self, *joined: int) -> CopyExtents:
        return CopyExtents(self.log, self.extents, list(joined))

    def ask(self, *joined: int) -> None:
        self.stage.tell(Received("metadata", self.asked(*joined)))

    def read(self) -> int:
        """Every GET is answered; how many there were."""
        by_object = {content.object: content.bytes for content in self.contents}
        gets = 0
        while self.stage.gets:
            self.stage.read_object(by_object[self.stage.gets[0].object])
            gets += 1
        return gets

    def read_as(self) -> list[Copied]:
        """The extents, each with the set sum of its batches."""
        return [
            replace(extent, sum=set_sum(batches_of(content.bytes)))
            for extent, content in zip(self.extents, self.contents, strict=True)
        ]

    def swapped(self, outcome: Any) -> SwapExtents:
        proposal = self.stage.proposed(SwapExtents)
        self.stage.apply(proposal, outcome)
        return proposal.command


def batches_of(content: bytes) -> list[bytes]:
    return [content[start : start + size] for start, size, _ in split(content)]


@pytest.fixture
def scattered(stage: Any, props: Any) -> Scattered:
    return Scattered(stage, props, 5)


def test_the_copy_is_one_logs_object_with_the_same_batches_in_their_order(
    scattered: Scattered, stage: Any, props: Any
) -> None:
    scattered.ask(3, 2)
    assert scattered.read() == 5
    content = b"".join(stage.puts[0].parts)
    footer = read_footer(content, len(content), "")
    assert [(row.log, row.count) for row in footer.rows] == [(props.LOG, 10)]
    body = content[: footer.rows[0].length]
    assert body == b"".join(source.bytes for source in scattered.contents)
    assert len(list(split(body))) == 10


def test_the_swap_says_where_everything_was_and_is(scattered: Scattered, stage: Any) -> None:
    scattered.ask(3, 2)
    scattered.read()
    assert not stage.pending(SwapExtents), "not before the copy is durable"
    object = stage.put()
    command = scattered.swapped(Swapped(3))
    length = sum(extent.length for extent in scattered.extents[:3])
    rest = sum(extent.length for extent in scattered.extents[3:])
    assert command == SwapExtents(
        "b",
        object,
        scattered.log,
        scattered.read_as(),
        [Joined(3, 0, length), Joined(2, length, rest)],
    )
    assert object == object_id(1, 0), "its name is this life's"
    assert (stage.broker.counters.copies, stage.broker.counters.copied_extents) == (1, 5)
    ((log, share),) = stage.broker.usage.by_log()
    assert (log, share.puts, share.put_bytes, share.gets) == (scattered.log, 1, length + rest, 5)


def test_an_append_after_it_has_the_next_name(scattered: Scattered, stage: Any) -> None:
    scattered.ask(5)
    scattered.read()
    stage.append(1)
    stage.turn()
    assert [put.object for put in stage.puts] == [object_id(1, 0), object_id(1, 1)]
    stage.put(1)
    stage.commit(0)
    assert len(stage.take_replies()) == 1, "and waits for no copy"
    stage.put(0)
    scattered.swapped(Swapped(4))


def test_few_extents_are_read_at_once(stage: Any, props: Any) -> None:
    scattered = Scattered(stage, props, 2 * READ_AT_ONCE + 3)
    scattered.ask(len(scattered.extents))
    assert len(stage.gets) == READ_AT_ONCE
    assert scattered.read() == len(scattered.extents)
    assert len(stage.puts) == 1


def test_what_is_copied_takes_no_place_in_the_cache(
    stage_of: Callable[..., Any], props: Any
) -> None:
    stage = stage_of(cache_bytes=1_500)
    kept = props.Content(b"kept", sequence=99)
    stage.request(1, Read(props.LOG, 0, 100, 10_000))
    stage.answer(props.resolved(kept.slice(), tail=1))
    stage.read_object(kept.bytes)
    before = stage.broker.gauges().cache_bytes
    scattered = Scattered(stage, props, 5)
    scattered.ask(5)
    scattered.read()
    stage.put()
    assert stage.broker.gauges().cache_bytes == before
    stage.request(2, Read(props.LOG, 0, 100, 10_000))
    stage.answer(props.resolved(kept.slice(), tail=1))
    assert not stage.gets


def test_what_a_reader_wants_at_the_same_time_is_kept_for_it(
    scattered: Scattered, stage: Any, props: Any
) -> None:
    scattered.ask(5)
    stage.request(1, Read(props.LOG, 0, 100, 10_000))
    stage.answer(props.resolved(scattered.contents[0].slice(), tail=2))
    assert scattered.read() == 5, "one GET for both"
    assert stage.broker.gauges().cache_bytes > 0
    assert len(stage.take_replies()) == 1


def test_one_copy_is_in_doubt_at_a_time(scattered: Scattered, stage: Any) -> None:
    scattered.ask(5)
    scattered.ask(5)
    scattered.read()
    stage.put()
    assert not stage.gets, "the next is begun when the first is decided"
    scattered.swapped(Swapped(0, "the log is gone"))
    scattered.read()
    second = stage.put()
    assert scattered.swapped(Swapped(4)).object == second
    counters = stage.broker.counters
    assert (counters.copies, counters.copies_in_vain) == (1, 1)


def test_more_than_can_be_done_is_forgotten(scattered: Scattered, stage: Any) -> None:
    for _ in range(QUEUED_MAX + 3):
        scattered.ask(5)
    done = 0
    while scattered.read():
        stage.put()
        scattered.swapped(Swapped(4))
        done += 1
    assert done == QUEUED_MAX + 1


def test_what_waited_for_too_long_is_another_brokers(
    stage_of: Callable[..., Any], props: Any
) -> None:
    stage = stage_of(compact_wait_ms=1_000)
    scattered = Scattered(stage, props, 5)
    scattered.ask(5)
    scattered.ask(5)
    stage.wait(2_000)
    scattered.read()
    stage.put()
    scattered.swapped(Swapped(4))
    assert not stage.gets


def test_a_repeated_swap_is_the_same(stage_of: Callable[..., Any], props: Any) -> None:
    stage = stage_of(propose_retry_ms=200)
    scattered = Scattered(stage, props, 5)
    scattered.ask(5)
    scattered.read()
    stage.put()
    stage.wait(1_000)
    first, *again = stage.pending(SwapExtents)
    assert again
    assert all(each == first for each in again)


def test_an_object_that_may_be_there_after_a_failure_is_declared_garbage(
    scattered: Scattered, stage: Any
) -> None:
    scattered.ask(5)
    scattered.read()
    object = stage.put(error=Unavailable("the store", "no answer"))
    command = scattered.swapped(Swapped(0, "nothing was named"))
    assert (command.object, command.extents, command.joined) == (object, [], [])
    assert not stage.puts, "the leader asks again"


def test_a_copy_ends_where_an_extent_cant_be_read(scattered: Scattered, stage: Any) -> None:
    scattered.ask(5)
    stage.get_failed(ObjectMissing("gone"))
    scattered.read()
    stage.turn()
    assert not stage.puts
    scattered.ask(5)
    scattered.read()
    assert len(stage.puts) == 1, "and the next is made"


def test_a_copy_ends_where_an_extent_holds_more_than_is_named(
    scattered: Scattered, stage: Any
) -> None:
    extent = scattered.extents[2]
    scattered.extents[2] = Copied(extent.first, 1, extent.object, 0, extent.length)
    scattered.ask(5)
    scattered.read()
    assert not stage.puts


def test_appends_go_first(stage_of: Callable[..., Any], props: Any) -> None:
    stage = stage_of(puts_in_flight_max=1)
    scattered = Scattered(stage, props, 5)
    stage.append(1)
    stage.turn()
    scattered.ask(5)
    assert not stage.gets
    stage.put()
    stage.commit(0)
    stage.wait(1_000)
    assert stage.gets


def test_a_broker_that_is_about_to_end_begins_none(scattered: Scattered, stage: Any) -> None:
    stage.tell(Drain())
    scattered.ask(5)
    assert not stage.gets


def test_a_fenced_broker_learns_it_from_a_swap_too(scattered: Scattered, stage: Any) -> None:
    scattered.ask(5)
    scattered.read()
    stage.put()
    scattered.swapped(Refused.of(BrokerFenced("b", 1, 2)))
    assert stage.broker.fenced is not None
