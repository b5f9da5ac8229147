"""The shard protocol's frames: what is written is read, in whatever pieces it comes."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch.core.belfast.protocol.codec import CODEC as BELFAST
from anabranch.core.bolt.protocol.codec import CODEC as BOLT
from anabranch.core.errors import BadFrame, PositionTrimmed
from anabranch.core.errors.refused import Refused
from anabranch.core.erwin.protocol import codec as frames
from anabranch.core.erwin.protocol.letters import Push, SealShard
from anabranch.core.erwin.protocol.messages import (
    ERWIN_VERSION,
    Data,
    Delivered,
    Elsewhere,
    FromShard,
    Hello,
    Read,
    Records,
    Span,
    Stored,
    Subscribe,
    ToShard,
)
from anabranch.core.erwin.protocol.rows import Fence, Row
from anabranch.core.replication.entries import Item
from anabranch.core.replication.letters import Copy
from anabranch.core.sequencing.protocol.ids import AppendId
from anabranch.core.sequencing.protocol.letters import Dropped
from anabranch.core.sequencing.protocol.messages import Directory, Locate
from anabranch.core.wire.frames import FrameReader, with_batches
from anabranch.core.wire.peers import PULSE_FRAME, Pulse, encode_letter
from anabranch.core.wire.session import Cancel, Credit

A, B = b"a batch of some bytes", b"another"

REQUESTS: list[ToShard] = [
    Hello(ERWIN_VERSION, "c", "client", "token"),
    Data(epoch=3, lowest=17, batch=A),
    Read(shard="a", start=7, bytes_max=100, records_max=5, wait_ms=20),
    Subscribe(shard="a", start=7),
    Locate(),
    Credit(3, 1 << 20),
    Cancel(4),
]
REPLIES: list[FromShard] = [
    Stored(),
    Records(
        upto=9,
        stable=40,
        trimmed=2,
        firsts=(3, 5, 6),
        counts=(2, 1, 1),
        batches=(A, b"", B),
        elsewhere=(Span(first=7, count=2, shard="b"),),
    ),
    Records(upto=9, stable=9, trimmed=0, firsts=(), counts=(), batches=(), elsewhere=()),
    Delivered(upto=9, firsts=(3,), counts=(2,), batches=(A,)),
    Delivered(upto=12, firsts=(), counts=(), batches=()),
    Directory(version=1, view=2, members=("s1",), leader="s1"),
    Elsewhere("host:1"),
    Refused.of(PositionTrimmed(3, 7)),
]


def read(reader: FrameReader[Any], stream: bytes, cuts: list[int]) -> list[Any]:
    ends = sorted({min(cut, len(stream)) for cut in cuts} | {len(stream)})
    found: list[Any] = []
    for start, end in zip([0, *ends], ends, strict=False):
        found += reader.feed(stream[start:end])
    return found


@given(cuts=st.lists(st.integers(0, 400)))
def test_what_is_written_is_read_whatever_pieces_it_comes_in(cuts: list[int]) -> None:
    asked = b"".join(
        part for n, each in enumerate(REQUESTS) for part in frames.encode_request(n, each)
    )
    assert read(frames.requests(1 << 16), asked, cuts) == list(enumerate(REQUESTS))
    told = frames.encode_replies(range(len(REPLIES)), REPLIES)
    assert read(frames.replies(), told, cuts) == list(enumerate(REPLIES))


def test_a_batch_is_not_copied_on_its_way_out() -> None:
    assert any(part is A for part in frames.encode_request(1, REQUESTS[1]))
    assert any(part is A for part in frames.encode_reply(1, REPLIES[1]))


def test_letters_of_all_kinds_and_pulses_are_read() -> None:
    letters = [
        Push(
            fence=Fence(1, 1),
            base=0,
            first=0,
            rows=[Row(0, 2, 1, AppendId(5, 0, 7))],
            batches=[A],
            stable=0,
            trimmed=0,
        ),
        SealShard(shard="a", epoch=2),
        Dropped(view=1, upto=7),
        Copy("a", 1, 1, 5, 5, [Item(5, 1, b"item")]),
    ]
    stream = b"".join(part for letter in letters for part in encode_letter(letter)) + PULSE_FRAME
    expected = [(0, each) for each in [*letters, Pulse()]]
    assert read(frames.letters(1 << 16), stream, []) == expected


@pytest.mark.parametrize("sizes", [[3], [1, 1], [4, 0], [2, 1]])
def test_sizes_that_do_not_fit_the_batches_cost_the_reply(sizes: list[int]) -> None:
    head = frames._pack(frames._DeliveredHead(9, (3, 4), (1, 1), sizes))
    whole = with_batches(frames.DELIVERED, 7, head, [b"abc"], [3])
    ((request, found),) = frames.replies().feed(b"".join(whole))
    assert request == 7
    assert isinstance(found, BadFrame) == (sizes != [2, 1])


def test_a_clients_first_frame_tells_which_engine_it_wants() -> None:
    kinds = [codec.hello[0] for codec in (BOLT, BELFAST, frames.CODEC)]
    assert len(set(kinds)) == len(kinds)


@pytest.mark.parametrize(
    "letter",
    [
        Push(fence=Fence(1 << 60, 1), base=0, first=0, rows=[], batches=[], stable=0, trimmed=0),
        Push(fence=Fence(1, 1), base=0, first=0, rows=[], batches=[], stable=1 << 62, trimmed=0),
        Push(fence=Fence(1, 1), base=-1, first=0, rows=[], batches=[], stable=0, trimmed=0),
        Push(
            fence=Fence(1, 1),
            base=0,
            first=0,
            rows=[Row(0, 0, 0, AppendId(1, 0, 0))],
            batches=[],
            stable=0,
            trimmed=0,
        ),
        SealShard(shard="a", epoch=1 << 30),
        Dropped(1 << 40, 0),
        Copy("a", 1, 1, 0, -1, []),
    ],
)
def test_a_letter_with_a_number_that_no_log_could_follow_is_unreadable(letter: Any) -> None:
    """It costs the letter and no more: numbers made of it wouldn't fit into a journal."""
    ((_, read),) = frames.letters(1 << 20).feed(b"".join(encode_letter(letter)))
    assert isinstance(read, BadFrame)
