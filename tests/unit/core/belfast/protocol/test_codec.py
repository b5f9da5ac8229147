"""Belfast's frames: what is written is read, in whatever pieces it comes, and nothing else is."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch.core.belfast.ledger.windows import Run
from anabranch.core.belfast.protocol import codec as frames
from anabranch.core.belfast.protocol.letters import Alive
from anabranch.core.belfast.protocol.messages import (
    BELFAST_VERSION,
    Append,
    Appended,
    Confirmed,
    Delivered,
    Elsewhere,
    Hello,
    Subscribe,
    ToClient,
    ToServer,
    Where,
)
from anabranch.core.errors import BadFrame, Unavailable
from anabranch.core.errors.refused import Refused
from anabranch.core.replication.entries import Item
from anabranch.core.replication.letters import Copy
from anabranch.core.wire.frames import FrameReader
from anabranch.core.wire.peers import (
    PULSE_FRAME,
    Greeting,
    Pulse,
    encode_greeting,
    encode_letter,
    greetings,
)
from anabranch.core.wire.session import Credit

A, B = b"a batch of some bytes", b"another"

REQUESTS: list[ToServer] = [
    Append(A),
    Subscribe("a", 7, Where(key_prefix=b"k")),
    Credit(3, 1 << 20),
    Hello(BELFAST_VERSION, "c", "client", "token"),
]
REPLIES: list[ToClient] = [
    Appended((Run(3, 2), Run(9, 1))),
    Delivered(1, 40, True, (Run(3, 2),), (A,), ((1, 2),)),
    Delivered(1, 40, False, (Run(3, 2), Run(7, 1)), (A, A, B), ((0, 1), (2, 1), (0, 1))),
    Delivered(2, 50, False, (), (), ()),
    Confirmed(1, 40),
    Elsewhere("host:1"),
    Refused.of(Unavailable("the log", "nobody leads")),
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
    told = b"".join(part for n, each in enumerate(REPLIES) for part in frames.encode_reply(n, each))
    assert read(frames.replies(), told, cuts) == list(enumerate(REPLIES))


def test_a_batch_that_stands_several_times_is_written_once() -> None:
    batch = b"x" * 10_000
    parts = tuple((n, 1) for n in range(50))
    runs = tuple(Run(2 * n, 1) for n in range(50))
    message = Delivered(1, 100, True, runs, (batch,) * 50, parts)
    written = b"".join(frames.encode_reply(1, message))
    assert len(written) < 11_000
    assert frames.replies().feed(written) == [(1, message)]


def test_a_batch_is_not_copied_on_its_way_out() -> None:
    assert any(part is A for part in frames.encode_request(1, REQUESTS[0]))
    assert any(part is A for part in frames.encode_reply(1, REPLIES[1]))


def test_letters_of_all_kinds_and_pulses_are_read() -> None:
    alive = Alive("a", ("h:1", "h:2"), 3, 1, -1)
    copy = Copy("a", 1, 1, 5, 5, [Item(5, 2, b"batch")])
    stream = b"".join(encode_letter(alive)) + PULSE_FRAME + b"".join(encode_letter(copy))
    assert read(frames.letters(1 << 16), stream, []) == [(0, alive), (0, Pulse()), (0, copy)]


def test_who_was_dialed_says_nothing_but_greetings_and_pulses() -> None:
    greeting = Greeting(1, "c", "h:1")
    said = (
        encode_greeting(greeting) + PULSE_FRAME + b"".join(encode_letter(Alive("a", (), 0, 0, 0)))
    )
    (_, first), (_, second), (_, third) = greetings().feed(said)
    assert (first, second) == (greeting, Pulse())
    assert isinstance(third, BadFrame)


@pytest.mark.parametrize("sizes", [[0, 3], [-1, 4], [2], [4], [3, 0, 0]])
def test_sizes_that_do_not_fit_the_batches_cost_the_reply(sizes: list[int]) -> None:
    head = frames.DeliveredHead(1, 5, True, (), tuple((0, 1) for _ in sizes), sizes)
    whole = frames.delivered_frame(7, head, [b"abc"])
    ((request, found),) = frames.replies().feed(b"".join(whole))
    assert request == 7
    assert isinstance(found, BadFrame) == (sizes != [3, 0, 0])
