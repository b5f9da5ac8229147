import tracemalloc
from collections.abc import Callable

import cramjam
import pytest
from aiokafka.codec import snappy_encode
from hypothesis import given
from hypothesis import strategies as st

from anabranch.core.errors import BatchTooLarge, CorruptBatch
from anabranch.core.records.codecs import Codec, compress, expand

MIB = 1 << 20
COMPRESSED = tuple(codec for codec in Codec if codec is not Codec.NONE)


@given(st.sampled_from(Codec), st.binary(max_size=2_000), st.integers(1, 100))
def test_what_was_compressed_expands_to_itself(codec: Codec, piece: bytes, times: int) -> None:
    content = piece * times
    assert bytes(expand(codec, compress(codec, content), len(content), "")) == content


@pytest.mark.parametrize("codec", COMPRESSED)
def test_the_bound_is_exact(codec: Codec) -> None:
    content = bytes(300_000)
    packed = compress(codec, content)
    assert len(expand(codec, packed, len(content), "")) == len(content)
    with pytest.raises(BatchTooLarge):
        expand(codec, packed, len(content) - 1, "")


@pytest.mark.parametrize("codec", COMPRESSED)
def test_a_bomb_is_refused_without_being_set_off(codec: Codec) -> None:
    bomb = compress(codec, bytes(64 * MIB))
    tracemalloc.start()
    with pytest.raises(BatchTooLarge):
        expand(codec, bomb, MIB, "")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 4 * MIB + len(bomb)


@pytest.mark.parametrize("codec", COMPRESSED)
def test_a_dense_batch_takes_room_for_what_it_holds_not_for_what_it_might(codec: Codec) -> None:
    content = bytes(MIB)
    packed = compress(codec, content)
    tracemalloc.start()
    assert bytes(expand(codec, packed, 256 * MIB, "")) == content
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 12 * len(content)


@pytest.mark.parametrize("codec", COMPRESSED)
def test_a_frame_cut_short_anywhere_is_refused(codec: Codec) -> None:
    packed = compress(codec, bytes(range(256)) * 4)
    for length in range(len(packed)):
        # Xerial's framing has no end: that whole blocks are missing shows by the count of records.
        if codec is Codec.SNAPPY and length == 16:
            continue
        with pytest.raises(CorruptBatch):
            expand(codec, packed[:length], MIB, "")


@pytest.mark.parametrize("codec", COMPRESSED)
def test_bytes_after_the_frame_are_refused(codec: Codec) -> None:
    with pytest.raises(CorruptBatch):
        expand(codec, compress(codec, b"some records") + b"more", MIB, "")


@pytest.mark.parametrize(
    "encode",
    [snappy_encode, lambda content: bytes(cramjam.snappy.compress_raw(content))],
    ids=["xerial", "raw"],
)
def test_both_of_kafkas_snappy_framings_are_read(encode: Callable[[bytes], bytes]) -> None:
    content = bytes(range(256)) * 300
    assert bytes(expand(Codec.SNAPPY, encode(content), len(content), "")) == content


def test_our_snappy_frames_are_those_of_other_clients() -> None:
    content = bytes(range(256)) * 300
    assert compress(Codec.SNAPPY, content) == snappy_encode(content)


@pytest.mark.parametrize("length", [-4, 0, 2**31 - 1])
def test_a_snappy_block_of_an_impossible_length_is_refused(length: int) -> None:
    packed = bytearray(compress(Codec.SNAPPY, b"some records"))
    packed[16:20] = length.to_bytes(4, "big", signed=True)
    with pytest.raises(CorruptBatch, match=str(length)):
        expand(Codec.SNAPPY, packed, MIB, "")


def test_a_snappy_block_that_claims_gigabytes_is_refused_before_any_is_allocated() -> None:
    with pytest.raises(BatchTooLarge):
        expand(Codec.SNAPPY, b"\xff\xff\xff\xff\x0f" + bytes(20), MIB, "")


def test_gzip_frames_hold_no_clock() -> None:
    assert compress(Codec.GZIP, b"some records")[4:8] == bytes(4)
