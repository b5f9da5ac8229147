"""What is believed without decoding is what the compiled reader believes too."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.core.records.test_scan import LIMITS, NULL, batch, raw, varint

from anabranch.core.errors import AnabranchError
from anabranch.core.records import batch as batches
from anabranch.core.records.batch import check, peek
from anabranch.core.records.codecs import Codec
from anabranch.core.records.record import Record, encode
from anabranch.core.records.uniform import are_uniform, is_plain

START = batches.HEADER.size
SIZE_MAX = 1 << 20


def believed(content: bytes, count: int, latest: int = 0, at: int = 0) -> bool:
    deltas = -1, latest
    if count == 1:
        return is_plain(content, at, deltas, SIZE_MAX)
    return are_uniform(content, at, count, deltas, SIZE_MAX)


def decoded(content: bytes, count: int, latest: int = 0) -> bool:
    """Does the compiled reader take it?"""
    whole = batch(content, count=count, latest=latest)
    header = peek(whole)
    try:
        batches._decode_records(whole, b"", header, LIMITS, "")
    except AnabranchError:
        return False
    return True


def records(count: int, **fields: Any) -> bytes:
    return b"".join(raw(number, **fields) for number in range(count))


sized: st.SearchStrategy[bytes] = st.integers(0, 300).map(lambda size: varint(size) + bytes(size))
fields = st.fixed_dictionaries(
    {"key": st.one_of(st.just(NULL), sized), "value": st.one_of(st.just(NULL), sized)}
)


@given(fields, st.integers(1, 200), st.integers(0, 100))
def test_records_alike_are_believed(parts: dict[str, bytes], count: int, stamp: int) -> None:
    content = records(count, stamp=stamp, **parts)
    assert believed(content, count, stamp)
    assert decoded(content, count, stamp)


@given(st.data())
def test_nothing_is_believed_that_the_reader_would_refuse(data: st.DataObject) -> None:
    """One byte of some record's framing is another, or some bytes are gone or too many."""
    count = data.draw(st.integers(1, 150))
    parts = data.draw(fields)
    stamps = data.draw(st.lists(st.integers(-2, 80), min_size=1, max_size=3))
    found = [
        raw(number, stamp=stamps[number % len(stamps)], key=parts["key"], value=parts["value"])
        for number in range(count)
    ]
    nth = data.draw(st.integers(0, count - 1))
    framing = range(len(found[nth]))
    at = data.draw(st.sampled_from([*framing[:9], *framing[-1:]]))
    other, length = data.draw(
        st.one_of(
            st.tuples(st.sampled_from([b"\0", b"\1", b"\2", b"\x80"]), st.just(1)),
            st.tuples(st.binary(max_size=3), st.integers(0, 3)),
        )
    )
    found[nth] = found[nth][:at] + other + found[nth][at + length :]
    content = b"".join(found)
    latest = data.draw(st.integers(0, 80))
    if believed(content, count, latest):
        assert decoded(content, count, latest)


@given(st.binary(max_size=64), st.integers(1, 70))
def test_no_noise_is_believed_that_the_reader_would_refuse(noise: bytes, count: int) -> None:
    for content in (noise, noise * count):
        if believed(content, count):
            assert decoded(content, count)


@pytest.mark.parametrize("count", [64, 65, 8_191, 8_192, 8_193, 16_384, 20_000])
def test_numbers_of_any_width_are_known(count: int) -> None:
    content = records(count, value=varint(3) + b"abc")
    assert believed(content, count)
    for nth in (0, count // 2, count - 1):
        at = content.index(raw(nth, value=varint(3) + b"abc"))
        number = at + 3
        wrong = content[:number] + bytes([content[number] ^ 2]) + content[number + 1 :]
        assert not believed(wrong, count)


@pytest.mark.parametrize(
    "change",
    [
        lambda content: content[:-1],
        lambda content: content + b"\0",
        lambda content: content[:-1] + b"\2",
        lambda content: b"\1" + content[1:],
        lambda content: content[:1] + b"\1" + content[2:],
        lambda content: content.replace(b"abc", b"abcd", 1),
        lambda content: content[:-5] + b"\4" + content[-4:],
    ],
    ids=[
        "cut",
        "too long",
        "a header",
        "a length below 0",
        "attributes",
        "a longer value",
        "a length too small",
    ],
)
@pytest.mark.parametrize("count", [1, 40])
def test_what_is_odd_is_left_to_the_reader(change: Callable[[bytes], bytes], count: int) -> None:
    content = records(count, value=varint(3) + b"abc")
    assert believed(content, count)
    assert not believed(change(content), count)


def test_times_must_lie_where_the_header_says() -> None:
    early, late = raw(0, stamp=-2), raw(0, stamp=9)
    assert not believed(early, 1, 9)
    assert believed(late, 1, 9)
    assert not believed(late, 1, 8)
    mixed = b"".join(raw(number, stamp=number % 7) for number in range(50))
    assert believed(mixed, 50, 6)
    assert not believed(mixed, 50, 5)
    assert not believed(mixed + raw(50, stamp=-2), 51, 6)


def test_a_record_too_large_is_left_to_the_reader() -> None:
    content = records(40, value=varint(300) + bytes(300))
    assert are_uniform(content, 0, 40, (-1, 0), 310)
    assert not are_uniform(content, 0, 40, (-1, 0), 300)


@pytest.mark.parametrize("codec", Codec)
@pytest.mark.parametrize("view", [bytes, bytearray, memoryview])
def test_a_batch_is_checked_the_same_in_any_buffer(codec: Codec, view: Callable[..., Any]) -> None:
    whole = batch(records(100, value=varint(9) + bytes(9)), codec=codec, count=100)
    assert check(view(whole), LIMITS, "").count == 100


@pytest.mark.parametrize("edge", [0, 64, 8_192, 1 << 20])
def test_a_bare_record_of_any_size_is_known_by_it(edge: int) -> None:
    """Also where one of its two lengths takes a byte more, and no record of some size exists."""
    for size in range(max(0, edge - 12), min(edge + 12, LIMITS.record_bytes_max + 1)):
        content = raw(0, value=varint(size) + bytes(size))
        assert is_plain(content, 0, (-1, 0), 2 << 20)
        assert decoded(content, 1)
        for odd in (content + b"\0", content[:-1], content[:-1] + b"\2"):
            assert not is_plain(odd, 0, (-1, 0), 2 << 20)
        assert not is_plain(content, 0, (-1, 0), len(content) - 1)
        assert not is_plain(content, 0, (1, 2), 2 << 20), "it has the batch's time"


def test_records_of_different_sizes_are_still_checked() -> None:
    several = encode([Record(bytes(n % 90)) for n in range(500)], now=1_700_000_000_000)
    assert check(several, LIMITS, "").count == 500
