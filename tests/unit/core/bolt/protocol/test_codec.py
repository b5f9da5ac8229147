"""Frames carry every message whole, in pieces of any size, and nothing malformed gets past them."""

import enum
import itertools
import struct
import types
import typing
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from anabranch.core.bolt.protocol import codec
from anabranch.core.bolt.protocol.commands import Done, Receipt
from anabranch.core.bolt.protocol.fronts import (
    AppendFront,
    ConfigureFront,
    FrontConfiguration,
    FrontEpoch,
    FrontMark,
    FrontRequest,
    LeadFront,
    OpenFront,
)
from anabranch.core.bolt.protocol.messages import (
    Append,
    Appended,
    ClientMessage,
    Control,
    Delivered,
    Describe,
    Plain,
    Records,
    ServerMessage,
    Survey,
)
from anabranch.core.errors import BadFrame
from anabranch.core.errors.refused import Refused
from anabranch.core.records.origins import Run
from anabranch.core.types import LogId
from anabranch.core.wire import frames

FRAME_BYTES_MAX = 1 << 16

numbers = st.integers(-(1 << 63), (1 << 63) - 1)
requests = st.integers(0, (1 << 32) - 1)
batches = st.binary(max_size=300)


def values(kind: Any) -> st.SearchStrategy[Any]:
    """Of the types that messages are made of."""
    kind = getattr(kind, "__supertype__", kind)
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        return st.one_of([values(argument) for argument in arguments])
    if origin is typing.Annotated:
        return bounded(*arguments)
    if origin is list:
        return st.lists(values(arguments[0]), max_size=3)
    if origin is tuple and arguments[-1] is Ellipsis:
        return st.lists(values(arguments[0]), max_size=3).map(tuple)
    if origin is tuple:
        return st.tuples(*map(values, arguments))
    if origin is dict:
        return st.dictionaries(values(arguments[0]), values(arguments[1]), max_size=3)
    if kind is int:
        return numbers
    if kind is str:
        return st.text(max_size=20)
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        return st.sampled_from(kind)
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        fields = msgspec.structs.fields(kind)
        return st.builds(kind, **{field.name: values(field.type) for field in fields})
    return {bool: st.booleans(), bytes: batches, type(None): st.none()}[kind]


def bounded(kind: Any, meta: msgspec.Meta) -> st.SearchStrategy[Any]:
    assert kind is int, "only numbers have bounds"
    least = None if meta.ge is None else int(meta.ge)
    if meta.lt is not None:
        return st.integers(least, int(meta.lt) - 1)
    return st.integers(least, None if meta.le is None else int(meta.le))


appends = st.builds(Append, st.integers(0, (1 << 64) - 1), batches, st.integers(-1, (1 << 31) - 1))
receipts = st.builds(Receipt, numbers, numbers, numbers)
runs = st.lists(values(Run), max_size=3)
positions = (numbers, numbers, numbers, numbers)
client_messages = st.one_of(appends, values(Control))
server_messages = st.one_of(
    st.builds(Appended, numbers, st.none()),
    st.builds(Appended, st.none(), receipts),
    st.builds(Records, runs, st.lists(batches, max_size=4), *positions),
    st.builds(Delivered, runs, st.lists(batches, max_size=4), st.booleans()),
    values(Plain),
)


def same(message: Any) -> Any:
    """Comparable: views and bytes of the same content are equal, in lists as well."""
    if isinstance(message, Append):
        return Append(message.log, bytes(message.batch), message.wait_ms)
    if isinstance(message, Records | Delivered):
        return msgspec.structs.replace(message, batches=[bytes(b) for b in message.batches])
    return message


def pieces(content: bytes, cuts: Sequence[int]) -> list[bytes]:
    at = [0, *sorted(cut % (len(content) + 1) for cut in cuts), len(content)]
    return [content[a:b] for a, b in itertools.pairwise(at)]


@given(st.lists(st.tuples(requests, client_messages), max_size=5), st.lists(st.integers(0)))
def test_what_clients_say_arrives_in_any_pieces(
    said: list[tuple[int, ClientMessage]], cuts: list[int]
) -> None:
    content = b"".join(
        b for request, message in said for b in codec.encode_request(request, message)
    )
    reader = codec.requests(FRAME_BYTES_MAX)
    heard = [frame for piece in pieces(content, cuts) for frame in reader.feed(piece)]
    assert [(request, same(message)) for request, message in heard] == said
    assert reader.broken is None
    assert reader.pending_bytes == 0


@given(st.lists(st.tuples(requests, server_messages), max_size=5), st.lists(st.integers(0)))
def test_what_servers_answer_arrives_in_any_pieces(
    said: list[tuple[int, ServerMessage]], cuts: list[int]
) -> None:
    content = b"".join(b for request, message in said for b in codec.encode_reply(request, message))
    reader = codec.replies()
    heard = [frame for piece in pieces(content, cuts) for frame in reader.feed(piece)]
    assert [(request, same(message)) for request, message in heard] == said


def test_every_split_of_three_frames_gives_the_same_messages() -> None:
    said: list[tuple[int, ClientMessage]] = [
        (1, Append(LogId(7), b"batch" * 5, 100)),
        (2, Describe("orders")),
        (3, Append(LogId(8), b"", -1)),
    ]
    content = b"".join(
        b for request, message in said for b in codec.encode_request(request, message)
    )
    for first in range(len(content) + 1):
        for second in range(first, len(content) + 1):
            reader = codec.requests(FRAME_BYTES_MAX)
            parts = (content[:first], content[first:second], content[second:])
            heard = [(r, same(m)) for part in parts for r, m in reader.feed(part)]
            assert heard == said


def test_a_message_outlives_what_the_reader_is_fed_after_it() -> None:
    reader = codec.requests(FRAME_BYTES_MAX)
    content = b"".join(codec.encode_request(1, Append(LogId(1), b"a" * 1_000)))
    (first,) = reader.feed(content[:300]) + reader.feed(content[300:] + content[:50])
    (second,) = reader.feed(content[50:])
    assert same(first[1]) == same(second[1]) == Append(LogId(1), b"a" * 1_000)


def heard(kind: int, body: bytes, *, flags: int = 0, reserved: int = 0) -> Any:
    """What a server makes of one frame that is well framed."""
    reader = codec.requests(FRAME_BYTES_MAX)
    head = frames.HEADER.pack(8 + len(body), kind, flags, reserved, 5)
    after = b"".join(codec.encode_request(6, Survey()))
    (number, message), following = reader.feed(head + body + after)
    assert number == 5
    assert following == (6, Survey())
    assert reader.broken is None
    return message


@pytest.mark.parametrize(
    ("kind", "body", "complaint"),
    [
        (0, b"", "kind 0"),
        (codec.PLAIN, msgspec.msgpack.encode(Done()), "kind 3"),
        (255, b"", "kind 255"),
        (codec.APPEND, b"", "ends before its batch"),
        (codec.APPEND, bytes(11), "ends before its batch"),
        (codec.CONTROL, b"", "truncated"),
        (codec.CONTROL, msgspec.msgpack.encode(["unheard-of", 1]), "unheard-of"),
        (codec.CONTROL, msgspec.msgpack.encode(["describe"]), "length"),
        (codec.CONTROL, msgspec.msgpack.encode(["describe", [1]]), "Expected"),
        (codec.CONTROL, msgspec.msgpack.encode(Survey()) + b"x", "trailing"),
        (codec.CONTROL, b"\xdd\xff\xff\xff\xff", "truncated"),
        (codec.CONTROL, b"\x92\xa8describe\xa2\xff\xfe", "codec"),
        (codec.CONTROL, b"\x93\xa8describe\x01" + b"\x91" * 50_000, "recursion"),
    ],
)
def test_a_body_that_cannot_be_read_costs_only_its_request(
    kind: int, body: bytes, complaint: str
) -> None:
    message = heard(kind, body)
    assert isinstance(message, BadFrame)
    assert complaint in message.message


@pytest.mark.parametrize(
    "message",
    [
        LeadFront(LogId(1), ()),
        ConfigureFront(LogId(1), FrontConfiguration(version=1, term=1)),
        OpenFront(LogId(1), FrontEpoch(1 << 62, 0)),
        AppendFront(log=LogId(1), mark=FrontMark(FrontEpoch(1, 1), 1, 1 << 62), batches=[b""]),
    ],
    ids=lambda message: type(message).__name__,
)
def test_no_client_speaks_as_a_lazy_front(message: FrontRequest) -> None:
    refused = heard(codec.CONTROL, msgspec.msgpack.encode(message))
    assert isinstance(refused, BadFrame)
    assert "Invalid value" in refused.message


def test_flags_of_another_version_are_refused() -> None:
    body = msgspec.msgpack.encode(Survey())
    assert heard(codec.CONTROL, body) == Survey()
    assert isinstance(heard(codec.CONTROL, body, flags=1), BadFrame)
    assert isinstance(heard(codec.CONTROL, body, reserved=1), BadFrame)


@pytest.mark.parametrize("length", [0, 7, FRAME_BYTES_MAX - 3, 1 << 31, (1 << 32) - 1])
def test_a_length_that_cannot_be_ends_the_stream_before_anything_is_kept(length: int) -> None:
    good = b"".join(codec.encode_request(1, Survey()))
    bad = frames.HEADER.pack(length, codec.APPEND, 0, 0, 2)
    whole, dripped = (codec.requests(FRAME_BYTES_MAX) for _ in range(2))
    assert whole.feed(good + bad + bytes(100)) == [(1, Survey())]
    assert [f for byte in good + bad for f in dripped.feed(bytes([byte]))] == [(1, Survey())]
    for reader in (whole, dripped):
        assert reader.broken is not None
        assert f"{length} bytes" in reader.broken.message
        assert reader.feed(good) == []
        assert reader.pending_bytes == 0


def test_the_longest_frame_passes_and_one_byte_more_does_not() -> None:
    batch = bytes(FRAME_BYTES_MAX - frames.HEADER.size - 12)
    longest = b"".join(codec.encode_request(1, Append(LogId(1), batch)))
    assert len(longest) == FRAME_BYTES_MAX
    assert same(codec.requests(FRAME_BYTES_MAX).feed(longest)[0][1]).batch == batch
    reader = codec.requests(FRAME_BYTES_MAX - 1)
    assert reader.feed(longest) == []
    assert reader.broken is not None


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        (codec.APPENDED, bytes(7)),
        (codec.PROMISED, bytes(25)),
        (codec.RECORDS, bytes(3)),
        (codec.RECORDS, struct.pack(">I", 9) + bytes(8)),
        (codec.RECORDS, b"\0\0\0\x07\x96\x90\x91\x05\0\0\0" + bytes(4)),
        (codec.RECORDS, b"\0\0\0\x08\x96\x90\x92\xff\x05\0\0\0" + bytes(4)),
        (codec.DELIVERED, b"\0\0\0\x05\x93\x90\x91\x05\xc2" + bytes(6)),
    ],
)
def test_a_client_refuses_replies_whose_parts_do_not_add_up(kind: int, body: bytes) -> None:
    reader = codec.replies()
    ((_, message),) = reader.feed(frames.HEADER.pack(8 + len(body), kind, 0, 0, 1) + body)
    assert isinstance(message, BadFrame)


framed = st.builds(
    lambda kind, reserved, body: frames.HEADER.pack(8 + len(body), kind, 0, reserved, 9) + body,
    st.integers(0, 9),
    st.sampled_from([0, 0, 0, 1]),
    st.binary(max_size=100),
)


@given(st.lists(st.one_of(st.binary(max_size=100), framed)), st.booleans())
@example([b"\0\0\0\x10\x01\0\0\0\0\0\0\1\xdf\xff\xff\xff\xff\0\0\0\0"], True)
def test_whatever_comes_nothing_escapes_and_little_is_kept(parts: list[bytes], side: bool) -> None:
    """Both directions, on any bytes at all: bad frames are named, and one frame at most is held."""
    reader = codec.requests(256) if side else codec.replies(256)
    for part in parts:
        for _, message in reader.feed(part):
            assert isinstance(message, BadFrame | msgspec.Struct)
        assert reader.pending_bytes < 256


def test_a_refusal_is_one_of_the_plain_replies() -> None:
    refused = Refused.of(BadFrame("it is not one"))
    content = b"".join(codec.encode_reply(frames.CONNECTION, refused))
    assert codec.replies().feed(content) == [(frames.CONNECTION, refused)]
