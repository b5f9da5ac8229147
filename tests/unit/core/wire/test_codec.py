"""What every engine's codec promises: any bytes are read or refused, within bounds."""

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anabranch.core.belfast.ledger.windows import Run as Places
from anabranch.core.belfast.protocol import messages as of_belfast
from anabranch.core.belfast.protocol.clients import BELFAST
from anabranch.core.bolt.protocol import messages as of_bolt
from anabranch.core.bolt.protocol.clients import BOLT
from anabranch.core.errors import BadFrame, Overloaded
from anabranch.core.errors.refused import Refused
from anabranch.core.records.origins import Run
from anabranch.core.types import LogId
from anabranch.core.wire.client_protocol import ClientProtocol
from anabranch.core.wire.frames import HEADER
from anabranch.core.wire.session import Cancel, Credit

FRAME_BYTES_MAX = 4_096
LOG = LogId(1)

PROTOCOLS: dict[str, ClientProtocol] = {"bolt": BOLT, "belfast": BELFAST}
REQUESTS: dict[str, list[Any]] = {
    "bolt": [
        of_bolt.Hello(1, "t"),
        of_bolt.Append(LOG, b"batch", 5),
        of_bolt.Read(LOG, 0, 1, 1),
        of_bolt.Describe("orders"),
        of_bolt.Trim(LOG, 5, b"once"),
        Credit(1, 5),
        Cancel(2),
    ],
    "belfast": [
        of_belfast.Hello(1, "c", "t"),
        of_belfast.Append(b"batch"),
        of_belfast.Subscribe("s", 0, of_belfast.Where(b"k")),
        of_belfast.Locate(),
        Credit(1, 5),
        Cancel(2),
    ],
}
REPLIES: dict[str, list[Any]] = {
    "bolt": [
        of_bolt.Welcome(1, "c", "s", 1, 2, 3),
        of_bolt.Appended(7),
        of_bolt.Delivered([Run(0, 1, 0, LOG, 0, 3)], [b"abc"], True),
        of_bolt.Records([], [b"abc", b"d"], 1, 0, 5, 5),
        of_bolt.Confirmed(3),
        Refused.of(Overloaded("it", 1, "it_max")),
    ],
    "belfast": [
        of_belfast.Welcome(1, "c", "n", "", 1, 2),
        of_belfast.Appended((Places(3, 2),)),
        of_belfast.Delivered(1, 5, True, (Places(0, 2),), (b"ab", b"c"), ((0, 1), (0, 1))),
        of_belfast.Confirmed(1, 3),
        of_belfast.Elsewhere("n"),
        Refused.of(Overloaded("it", 1, "it_max")),
    ],
}
engines = pytest.mark.parametrize("engine", sorted(PROTOCOLS))


def plain(message: Any) -> Any:
    """Views and bytes of the same content are equal, but not in a struct's sequences."""
    if type(message).__name__ in ("Delivered", "Records"):
        return type(message), [bytes(each) for each in message.batches], message.runs
    if type(message).__name__ == "Append":
        return bytes(message.batch), getattr(message, "log", None)
    return message


def frames(protocol: ClientProtocol, engine: str, side: str) -> tuple[list[Any], bytes]:
    codec = protocol.codec
    said = (REQUESTS if side == "requests" else REPLIES)[engine]
    encode = codec.encode_request if side == "requests" else codec.encode_reply
    parts = [bytes(part) for n, each in enumerate(said, 1) for part in encode(n, each)]
    return said, b"".join(parts)


def reader(protocol: ClientProtocol, side: str) -> Any:
    codec = protocol.codec
    return codec.requests(FRAME_BYTES_MAX) if side == "requests" else codec.replies()


@engines
@pytest.mark.parametrize("side", ["requests", "replies"])
@given(cuts=st.lists(st.integers(0, 2_000), max_size=12))
def test_what_is_said_arrives_in_any_pieces(engine: str, side: str, cuts: list[int]) -> None:
    protocol = PROTOCOLS[engine]
    said, content = frames(protocol, engine, side)
    edges = [0, *sorted(min(cut, len(content)) for cut in cuts), len(content)]
    reading = reader(protocol, side)
    heard = [each for start, end in pairwise(edges) for each in reading.feed(content[start:end])]
    assert [(n, plain(each)) for n, each in heard] == [
        (n, plain(each)) for n, each in enumerate(said, 1)
    ]
    assert not reading.partial


@engines
@pytest.mark.parametrize("side", ["requests", "replies"])
@settings(max_examples=150)
@given(data=st.data())
def test_a_spoilt_stream_is_read_or_refused_and_what_is_kept_is_bounded(
    engine: str, side: str, data: st.DataObject
) -> None:
    """Bytes changed, left out, put in or put in the place of a header."""
    protocol = PROTOCOLS[engine]
    said, content = frames(protocol, engine, side)
    spoilt = bytearray(content)
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(spoilt) - 1))
        match data.draw(st.integers(0, 2)):
            case 0:
                spoilt[place] = data.draw(st.integers(0, 255))
            case 1:
                del spoilt[place : place + data.draw(st.integers(1, 9))]
                spoilt = spoilt or bytearray(b"\0")
            case _:
                spoilt[place:place] = data.draw(st.binary(max_size=20))
    reading = reader(protocol, side)
    step = data.draw(st.integers(1, 400))
    known = {type(each) for each in (*said, BadFrame(""))}
    for start in range(0, len(spoilt), step):
        for number, message in reading.feed(bytes(spoilt[start : start + step])):
            assert 0 <= number < 1 << 32
            assert type(message) in known or type(message).__module__.startswith("anabranch.core")
        assert reading.pending_bytes <= max(FRAME_BYTES_MAX, len(spoilt))
    if reading.broken is not None:
        assert reading.pending_bytes == 0
        assert reading.feed(content) == []


@engines
@given(body=st.binary(max_size=200), kind=st.integers(0, 255))
def test_any_body_of_any_kind_costs_its_request_alone(engine: str, body: bytes, kind: int) -> None:
    protocol = PROTOCOLS[engine]
    said, content = frames(protocol, engine, "requests")
    reading = reader(protocol, "requests")
    frame = HEADER.pack(8 + len(body), kind, 0, 0, 77) + body
    (number, _), *heard = reading.feed(frame + content)
    assert number == 77
    assert [plain(each) for _, each in heard] == [plain(each) for each in said]


@engines
def test_a_nested_body_costs_its_request_and_no_recursion(engine: str) -> None:
    protocol = PROTOCOLS[engine]
    kind, _ = protocol.codec.hello
    body = b"\x91" * 3_000 + b"\xc0"
    ((_, refused),) = reader(protocol, "requests").feed(
        HEADER.pack(8 + len(body), kind, 0, 0, 1) + body
    )
    assert isinstance(refused, BadFrame)


@engines
def test_a_server_tells_the_engine_by_the_kind_of_the_first_frame(engine: str) -> None:
    kinds = [each.codec.hello[0] for each in PROTOCOLS.values()]
    assert len(set(kinds)) == len(kinds)
    protocol = PROTOCOLS[engine]
    hello = REQUESTS[engine][0]
    frame = b"".join(map(bytes, protocol.codec.encode_request(1, hello)))
    kind, decode = protocol.codec.hello
    assert frame[4] == kind
    assert decode(frame, HEADER.size, len(frame)) == hello


@engines
def test_many_replies_are_what_each_of_them_is(engine: str) -> None:
    codec = PROTOCOLS[engine].codec
    said = REPLIES[engine]
    numbers = range(5, 5 + len(said))
    one_by_one = [
        bytes(p) for n, each in zip(numbers, said, strict=True) for p in codec.encode_reply(n, each)
    ]
    assert bytes(codec.encode_replies(list(numbers), said)) == b"".join(one_by_one)
