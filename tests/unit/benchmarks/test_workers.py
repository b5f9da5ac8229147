"""What the benchmarks of the cluster load it with does what they say of it."""

import struct
from statistics import median

import msgspec
import pytest
from benchmarks.cluster.dialects import Frames, Produce, Refused
from benchmarks.cluster.flood import Plan, Tally, batch_of
from benchmarks.cluster.slow_store import Latency
from benchmarks.timing import percentile

from anabranch.core.bolt.protocol.codec import encode_reply, requests
from anabranch.core.bolt.protocol.messages import Append, Appended
from anabranch.core.limits import MIB
from anabranch.core.records.batch import verify
from anabranch.core.types import LogId

PLAN = Plan(targets=[], connections=1, in_flight=1, seconds=1, value_bytes=10, records=3, warm_s=0)
MS = 1_000_000


def produced(topic: bytes, error: int) -> bytes:
    """Kafka's answer to one Produce of version 7."""
    partition = struct.pack(">ihqqq", 0, error, 7, -1, 0)
    topics = struct.pack(">ih", 1, len(topic)) + topic + struct.pack(">i", 1) + partition
    body = struct.pack(">i", 0) + topics + struct.pack(">i", 0)
    return struct.pack(">i", len(body)) + body


def test_frames_carry_sound_batches_in_a_producers_order() -> None:
    frames = Frames(5, batch_of(PLAN), PLAN.records, producer=77)
    reader = requests(MIB)
    heard = reader.feed(b"".join(frames.next() + frames.next()))
    sequences: list[int] = []
    for _, message in heard:
        assert isinstance(message, Append)
        assert message.log == LogId(5)
        header = verify(message.batch, "a frame")
        assert header.producer_id == 77
        sequences.append(header.base_sequence)
    assert sequences == [0, PLAN.records]


def test_acknowledgements_are_counted_however_they_are_cut() -> None:
    answers = b"".join(b"".join(encode_reply(n, Appended(n))) for n in range(2, 5))
    frames = Frames(5, b"", 1, producer=1)
    assert sum(frames.heard(answers[at : at + 7]) for at in range(0, len(answers), 7)) == 3


def test_kafkas_answers_are_counted_however_they_are_cut() -> None:
    produce = Produce("orders", batch_of(PLAN))
    answers = produced(b"orders", 0) * 3
    assert sum(produce.heard(answers[at : at + 11]) for at in range(0, len(answers), 11)) == 3
    with pytest.raises(Refused, match="error 10"):
        produce.heard(produced(b"orders", 10))


def test_what_is_acknowledged_outside_the_time_isnt_counted() -> None:
    tally = Tally(msgspec.structs.replace(PLAN, warm_s=1.0))
    tally.count(0, tally.began - 1)
    assert not tally.latencies
    tally.count(tally.began, tally.began + 30 * MS)
    tally.count(tally.began, tally.ends)
    assert (tally.latencies, tally.buckets) == ([30 * MS], [0, 1])


def test_there_is_something_to_say_even_if_nothing_came_in_time() -> None:
    tally = Tally(PLAN)
    late = tally.ends + 5 * MS
    assert not tally.over(late)
    tally.count(tally.began, late)
    assert tally.over(late)
    assert tally.last == late


def test_a_slow_store_is_as_slow_as_it_was_told_to_be() -> None:
    latency = Latency(100, 195)
    waits = [latency.seconds(number) * 1_000 for number in range(1_000)]
    for some in (waits, waits[::2], waits[500:]):
        assert median(some) == pytest.approx(100, rel=0.02)
        assert percentile(sorted(some), 99) == pytest.approx(195, rel=0.05)
