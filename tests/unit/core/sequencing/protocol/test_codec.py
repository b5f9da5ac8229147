"""The sequencing protocol's frames: what is written is read, in whatever pieces it comes."""

from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch.core.belfast.protocol.codec import CODEC as BELFAST
from anabranch.core.bolt.protocol.codec import CODEC as BOLT
from anabranch.core.errors import BadFrame, StaleView
from anabranch.core.errors.refused import Refused
from anabranch.core.erwin.protocol.codec import CODEC as ERWIN
from anabranch.core.sequencing.protocol import codec as frames
from anabranch.core.sequencing.protocol.ids import AppendId
from anabranch.core.sequencing.protocol.messages import (
    SEQUENCING_VERSION,
    Append,
    AppendMeta,
    AskTail,
    Directory,
    Done,
    Elsewhere,
    FindPosition,
    Found,
    FromSequencer,
    Hello,
    Inspect,
    Locate,
    LogSurvey,
    SequencingStatus,
    SetShardOpen,
    Shard,
    ShardPlace,
    Survey,
    Tail,
    Taken,
    ToSequencer,
    Trim,
    Welcome,
)
from anabranch.core.wire.frames import FrameReader, with_batches
from anabranch.core.wire.session import Cancel

ID = AppendId(1 << 62, 3, 17)

REQUESTS: list[ToSequencer] = [
    Hello(SEQUENCING_VERSION, "c", "client", "token"),
    Append(3, 17, b"a batch of some bytes"),
    AppendMeta(3, 17, ID, 2, 100, "a"),
    FindPosition(ID),
    AskTail(3),
    Locate(),
    Inspect(),
    Survey(),
    Trim(40),
    SetShardOpen("a", False),
    Cancel(4),
]
REPLIES: list[FromSequencer] = [
    Welcome(SEQUENCING_VERSION, "c", "n:1", "0", 1, 1),
    Taken(),
    Taken("a"),
    Found(9),
    Tail(9, 12),
    Directory(
        version=1,
        view=2,
        members=("s1",),
        leader="s1",
        shards=(Shard(name="a", primary="h:1", replicas=("h:1",)),),
    ),
    SequencingStatus(
        version=1,
        view=2,
        leader="s1",
        members=("s1",),
        mode="m",
        durability="fsync",
        stable=1,
        tail=2,
        trimmed=0,
        backlog_records=1,
        backlog_bytes=300,
        ring_bytes_max=1 << 20,
        shards=(),
    ),
    Done(),
    LogSurvey(
        node="a:1",
        version=3,
        term=2,
        view=1,
        leader="a:1",
        members=(("a:1", 7), ("b:1", 8)),
        sequencers=("a:1", "b:1"),
        mode="st",
        durability="memory",
        shards=(
            ShardPlace(
                number=0,
                name="s",
                nodes=("c:1",),
                epoch=1,
                primary="c:1",
                replicas=("c:1",),
                open=True,
                removed=False,
            ),
        ),
        lost_views=((1, 2),),
        controller="b:1/controller",
        age_ms=20,
        obstacle="",
        changing="sealing",
        silent=("a:1",),
        leaving=("b:1",),
        taking_over=("s",),
    ),
    Elsewhere("host:1"),
    Refused.of(StaleView("an append", 3, 4)),
]


def read(reader: FrameReader[Any], stream: bytes, cuts: list[int]) -> list[Any]:
    ends = sorted({min(cut, len(stream)) for cut in cuts} | {len(stream)})
    found: list[Any] = []
    for start, end in zip([0, *ends], ends, strict=False):
        found += reader.feed(stream[start:end])
    return found


@given(cuts=st.lists(st.integers(0, 600)))
def test_what_is_written_is_read_whatever_pieces_it_comes_in(cuts: list[int]) -> None:
    asked = b"".join(
        bytes(part)
        for number, message in enumerate(REQUESTS, 1)
        for part in frames.encode_request(number, message)
    )
    assert read(frames.requests(1 << 20), asked, cuts) == [*enumerate(REQUESTS, 1)]
    answered = frames.encode_replies(range(1, len(REPLIES) + 1), REPLIES)
    assert read(frames.replies(), answered, cuts) == [*enumerate(REPLIES, 1)]
    one_by_one = [frames.encode_reply(number, each) for number, each in enumerate(REPLIES, 1)]
    assert b"".join(bytes(part) for parts in one_by_one for part in parts) == answered


def test_every_message_is_among_those_that_are_tried() -> None:
    assert {type(each) for each in REQUESTS} == set(get_args(ToSequencer))
    assert {type(each) for each in REPLIES} == set(get_args(FromSequencer))


def test_the_first_frame_tells_clients_of_all_protocols_apart() -> None:
    kinds = [codec.hello[0] for codec in (BOLT, BELFAST, ERWIN, frames.CODEC)]
    assert len({*kinds[1:]}) == 3
    assert frames.CODEC.hello[0] not in kinds[:3]


def test_an_append_that_cant_be_read_costs_its_request_and_no_more() -> None:
    bad = b"".join(map(bytes, with_batches(frames.APPEND, 7, b"\x90", [b"x"], [1])))
    good = b"".join(map(bytes, frames.encode_request(8, Locate())))
    (_, error), after = frames.requests(1 << 20).feed(bad + good)
    assert isinstance(error, BadFrame)
    assert after == (8, Locate())


@pytest.mark.parametrize("message", REPLIES, ids=repr)
def test_a_reply_is_no_request(message: FromSequencer) -> None:
    frame = b"".join(map(bytes, frames.encode_reply(1, message)))
    ((_, found),) = frames.requests(1 << 20).feed(frame)
    assert isinstance(found, BadFrame)
