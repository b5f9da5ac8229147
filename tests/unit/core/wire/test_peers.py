"""Greetings and pulses of processes of one cluster, whatever letters follow them."""

from anabranch.core.errors import WrongCluster
from anabranch.core.errors.refused import Refused
from anabranch.core.wire.frames import FrameReader
from anabranch.core.wire.peers import (
    GREETING,
    GREETING_BYTES_MAX,
    PULSE,
    PULSE_FRAME,
    FromNode,
    Greeting,
    Pulse,
    decode_pulse,
    decode_welcome,
    encode_greeting,
)

FIRST = Greeting(1, "c", "node-0", "0.1", "token")


def reader() -> FrameReader[FromNode]:
    return FrameReader({GREETING: decode_welcome, PULSE: decode_pulse}, GREETING_BYTES_MAX)


def test_a_greeting_and_the_pulses_behind_it_are_read_back() -> None:
    found = reader().feed(encode_greeting(FIRST) + PULSE_FRAME + PULSE_FRAME)
    assert [message for _, message in found] == [FIRST, Pulse(), Pulse()]
    assert [request for request, _ in found] == [0, 0, 0]


def test_a_refusal_in_place_of_a_greeting_keeps_its_code() -> None:
    refused = Refused.of(WrongCluster("node-0", "a", "b"))
    ((_, answer),) = reader().feed(encode_greeting(refused))
    assert answer == refused
    assert isinstance(answer, Refused)
    assert isinstance(answer.error(), WrongCluster)
