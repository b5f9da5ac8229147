"""Letters between processes arrive whole, and what is none of them costs itself and no more."""

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.core.bolt.protocol.test_codec import pieces, values

from anabranch.core.bolt.protocol import peers as bolt_peers
from anabranch.core.bolt.protocol.letters import Alive, FromMetadata, Leading, ToMetadata
from anabranch.core.errors import BadFrame
from anabranch.core.errors.refused import Refused
from anabranch.core.wire import peers
from anabranch.core.wire.frames import HEADER

FRAME_BYTES_MAX = 1 << 20
GREETING = peers.Greeting(peers.PEER_VERSION, "c", "broker-0", "0.1", "token")


@given(st.lists(values(ToMetadata), max_size=4), st.lists(st.integers(0)))
def test_what_brokers_write_arrives_in_any_pieces(said: list[Any], cuts: Sequence[int]) -> None:
    content = b"".join(b"".join(peers.encode_letter(letter)) + peers.PULSE_FRAME for letter in said)
    reader = bolt_peers.letters_of_brokers(FRAME_BYTES_MAX)
    heard = [message for piece in pieces(content, cuts) for _, message in reader.feed(piece)]
    assert [each for each in heard if not isinstance(each, peers.Pulse)] == said
    assert len(heard) == 2 * len(said)


@given(st.lists(values(FromMetadata), max_size=4), st.lists(st.integers(0)))
def test_what_members_write_arrives_in_any_pieces(said: list[Any], cuts: Sequence[int]) -> None:
    welcome = peers.encode_greeting(GREETING)
    content = welcome + b"".join(part for letter in said for part in peers.encode_letter(letter))
    reader = bolt_peers.messages_of_members(FRAME_BYTES_MAX)
    heard = [message for piece in pieces(content, cuts) for _, message in reader.feed(piece)]
    assert heard == [GREETING, *said]


def test_a_member_is_greeted_by_a_broker_and_by_nothing_else() -> None:
    reader = peers.first_greeting()
    letter, pulse = b"".join(peers.encode_letter(Alive(1))), peers.PULSE_FRAME
    heard = [m for _, m in reader.feed(letter + pulse + peers.encode_greeting(GREETING))]
    assert [isinstance(each, BadFrame) for each in heard] == [True, True, False]
    assert heard[2] == GREETING


def test_a_refusal_arrives_in_the_place_of_a_greeting() -> None:
    refused = Refused("wrong-cluster", "not here", {})
    heard = bolt_peers.messages_of_members(FRAME_BYTES_MAX).feed(peers.encode_greeting(refused))
    assert heard == [(0, refused)]


def test_a_stranger_can_make_nobody_keep_much() -> None:
    reader = peers.first_greeting()
    length = peers.GREETING_BYTES_MAX
    reader.feed(HEADER.pack(length, peers.GREETING, 0, 0, 0) + bytes(100))
    assert reader.broken is not None
    assert reader.pending_bytes == 0


@pytest.mark.parametrize(
    "body", [b"", b"\xc1", msgspec.msgpack.encode(["alive"]), msgspec.msgpack.encode(["new", 1])]
)
def test_a_letter_that_cannot_be_read_costs_itself(body: bytes) -> None:
    frame = HEADER.pack(8 + len(body), peers.LETTER, 0, 0, 0) + body
    reader = bolt_peers.letters_of_brokers(FRAME_BYTES_MAX)
    bad, good = reader.feed(frame + b"".join(peers.encode_letter(Alive(7))))
    assert isinstance(bad[1], BadFrame)
    assert good[1] == Alive(7)


def test_a_later_version_may_say_more_in_a_letter() -> None:
    body = msgspec.msgpack.encode(["leading", 7, 3, "and more"])
    frame = HEADER.pack(8 + len(body), peers.LETTER, 0, 0, 0) + body
    assert bolt_peers.messages_of_members(FRAME_BYTES_MAX).feed(frame) == [(0, Leading(7, 3))]
