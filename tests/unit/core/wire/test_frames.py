"""Frames are found in any stream of bytes, for any vocabulary, and cost no more than they may."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch.core.errors import BadFrame
from anabranch.core.wire.frames import HEADER, Decoder, FrameReader, framed, parts

FRAME_BYTES_MAX = 64
WORD = 7
"""The kind of the only message in this vocabulary: its body, as it stands."""


def word(data: bytes | memoryview, start: int, end: int) -> bytes:
    return bytes(data[start:end])


DECODERS: dict[int, Decoder[bytes]] = {WORD: word}


@given(
    words=st.lists(st.tuples(st.integers(0, (1 << 32) - 1), st.binary(max_size=52)), max_size=8),
    cuts=st.lists(st.integers(0, 400), max_size=20),
)
def test_every_frame_is_found_whole_wherever_the_stream_is_cut(
    words: list[tuple[int, bytes]], cuts: list[int]
) -> None:
    stream = b"".join(framed(WORD, request, body) for request, body in words)
    edges = [0, *sorted(min(cut, len(stream)) for cut in cuts), len(stream)]
    reader: FrameReader[bytes] = FrameReader(DECODERS, FRAME_BYTES_MAX)
    found = [each for start, end in pairwise(edges) for each in reader.feed(stream[start:end])]
    assert found == words
    assert reader.pending_bytes == 0
    assert reader.broken is None


def test_a_frame_of_an_unknown_kind_costs_itself_alone() -> None:
    reader: FrameReader[bytes] = FrameReader(DECODERS, FRAME_BYTES_MAX)
    (first, strange), (second, known) = reader.feed(framed(9, 1, b"?") + framed(WORD, 2, b"!"))
    assert (first, second, known) == (1, 2, b"!")
    assert isinstance(strange, BadFrame)
    assert "kind 9" in strange.message


def test_reserved_bits_are_refused_in_this_version() -> None:
    reader: FrameReader[bytes] = FrameReader(DECODERS, FRAME_BYTES_MAX)
    ((_, refused),) = reader.feed(HEADER.pack(8, WORD, 1, 0, 3))
    assert isinstance(refused, BadFrame)


def test_a_length_that_is_not_possible_breaks_the_stream_and_keeps_nothing() -> None:
    for length in (7, FRAME_BYTES_MAX - 3):
        reader: FrameReader[bytes] = FrameReader(DECODERS, FRAME_BYTES_MAX)
        assert reader.feed(HEADER.pack(length, WORD, 0, 0, 1) + bytes(1_000)) == []
        assert reader.broken is not None
        assert str(length) in reader.broken.message
        assert reader.pending_bytes == 0


def test_the_length_of_an_unfinished_frame_is_known_once_it_has_come() -> None:
    reader: FrameReader[bytes] = FrameReader(DECODERS, FRAME_BYTES_MAX)
    frame = framed(WORD, 1, bytes(20))
    reader.feed(frame[:3])
    assert (bytes(reader.partial), reader.announced_bytes) == (frame[:3], 0)
    reader.feed(frame[3:10])
    assert reader.announced_bytes == len(frame)
    assert reader.begun == 1


def test_a_header_that_is_longer_than_its_body_is_refused() -> None:
    body = (100).to_bytes(4, "big") + b"short"
    with pytest.raises(BadFrame, match="a header of 100 bytes"):
        parts(body, 0, len(body))
