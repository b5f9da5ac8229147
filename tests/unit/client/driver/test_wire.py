"""One connection of a client: what it tells of how it ended, and that nothing comes after."""

import asyncio
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch.client.driver.misdial import guess
from anabranch.client.driver.wire import Wire
from anabranch.core.bolt.protocol import codec
from anabranch.core.bolt.protocol.messages import Confirmed
from anabranch.core.wire.frames import HEADER

FRAME = b"".join(map(bytes, codec.encode_reply(7, Confirmed(3))))


class Transport(asyncio.Transport):
    """Takes what is written; the test says what comes."""

    def __init__(self) -> None:
        super().__init__()
        self.written: list[bytes] = []
        self.aborted = 0

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return default

    def is_closing(self) -> bool:
        return self.aborted > 0

    def write(self, data: Any) -> None:
        self.written.append(bytes(data))

    def writelines(self, list_of_data: Any) -> None:
        self.written += map(bytes, list_of_data)

    def abort(self) -> None:
        self.aborted += 1


class Ends:
    def __init__(self, tls_scheme: str | None = "anabranchs") -> None:
        self.heard: list[Any] = []
        self.lost: list[str] = []
        self.wire: Wire[Any] = Wire(
            codec.replies(),
            lambda _, replies: self.heard.extend(replies),
            lambda _, reason: self.lost.append(reason),
            tls_scheme,
        )
        self.transport = Transport()
        self.wire.connection_made(self.transport)


@given(st.lists(st.integers(0, 60), max_size=8))
def test_replies_are_heard_in_order_in_whatever_pieces_they_come(cuts: list[int]) -> None:
    ends = Ends()
    content = FRAME * 3
    edges = [0, *sorted(min(cut, len(content)) for cut in cuts), len(content)]
    for start, end in pairwise(edges):
        if start < end:
            ends.wire.data_received(content[start:end])
    assert ends.heard == [(7, Confirmed(3))] * 3
    ends.wire.connection_lost(None)
    assert ends.lost == ["the server closed the connection"]


@pytest.mark.parametrize(
    ("said", "error", "reason"),
    [
        (b"HTTP/1.1 400", None, "HTTP is spoken there"),
        (b"\x15\x03\x01", None, "TLS is spoken there: write anabranchs://"),
        (b"", None, "without a word"),
        (FRAME, ConnectionResetError("reset"), "reset"),
        (HEADER.pack(1, 1, 0, 0, 1), None, "a length of 1 bytes"),
    ],
    ids=["http", "tls", "nothing", "reset", "broken"],
)
def test_how_a_connection_ended_is_told_once(
    said: bytes, error: Exception | None, reason: str
) -> None:
    ends = Ends()
    if said:
        ends.wire.data_received(said)
    ends.wire.connection_lost(error)
    (told,) = ends.lost
    assert reason in told


def test_a_stream_that_cant_be_followed_is_given_up_with_what_came_before_it() -> None:
    ends = Ends()
    ends.wire.data_received(FRAME + HEADER.pack(1, 1, 0, 0, 1) + FRAME)
    assert ends.heard == [(7, Confirmed(3))]
    assert ends.transport.aborted == 1


def test_after_an_abort_nothing_is_heard_and_nobody_is_told() -> None:
    ends = Ends()
    ends.wire.abort()
    ends.wire.data_received(FRAME)
    ends.wire.connection_lost(ConnectionResetError())
    assert (ends.heard, ends.lost) == ([], [])
    assert ends.wire.closing


@given(st.lists(st.integers(0, 50_000).map(bytes), max_size=5))
def test_all_that_is_sent_in_a_turn_is_written_in_order(buffers: list[bytes]) -> None:
    ends = Ends()
    ends.wire.send(list(buffers))
    assert b"".join(ends.transport.written) == b"".join(buffers)
    if sum(map(len, buffers)) <= 64 * 1024:
        assert len(ends.transport.written) == 1, "small frames are one write"


@given(st.binary(max_size=8))
def test_over_tls_nobody_is_advised_to_use_tls(begin: bytes) -> None:
    assert "write " not in (guess(begin, None) or "")
    if begin[:4] != b"HTTP":
        assert guess(begin, None) is None
