"""A reply that many get is encoded once, and counts as what it is."""

from typing import Any

from msgspec.structs import replace

from anabranch.core.belfast.protocol import codec
from anabranch.core.belfast.protocol.clients import BELFAST, reply_size
from anabranch.core.belfast.protocol.messages import Append, Directory, Done, Inspect, Locate
from anabranch.core.bolt.protocol.clients import BOLT
from anabranch.core.limits import KIB, Limits
from anabranch.core.machine import Buffer
from anabranch.core.wire.client_protocol import ReplySize
from anabranch.shell.server.repeated_replies import RepeatedReplies

DIRECTORY = Directory(1, 2, "leader:1", (), 3, 4)


def large(kib: int) -> Directory:
    return replace(DIRECTORY, hosts={"node": "h" * kib * KIB})


def received(*frames: list[Buffer]) -> list[Any]:
    return codec.replies().feed(b"".join([part for frame in frames for part in frame]))


def expected(repeated: RepeatedReplies, question: object) -> ReplySize:
    least = reply_size(question, Limits())
    assert least is not None
    return repeated.expected(question, least)


def test_everybody_gets_the_reply_to_the_request_that_is_theirs() -> None:
    repeated = RepeatedReplies(BELFAST)
    later = replace(DIRECTORY, index=2)
    frames = [repeated.encode(request, DIRECTORY) for request in (1, 2**32 - 1)]
    frames.append(repeated.encode(3, later))
    assert received(*frames) == [(1, DIRECTORY), (2**32 - 1, DIRECTORY), (3, later)]


def test_the_same_object_is_encoded_once() -> None:
    repeated = RepeatedReplies(BELFAST)
    first, second = (repeated.encode(request, DIRECTORY) for request in (1, 2))
    (body, again) = (frames[1] for frames in (first, second))
    assert isinstance(body, memoryview)
    assert isinstance(again, memoryview)
    assert body.obj is again.obj, "memory is shared too"


def test_a_question_counts_as_much_as_the_last_reply_took() -> None:
    repeated = RepeatedReplies(BELFAST)
    least = expected(repeated, Locate())
    repeated.encode(1, DIRECTORY)
    assert expected(repeated, Locate()) == least, "small ones take time too"
    repeated.encode(2, large(1_000))
    (own, shared) = expected(repeated, Locate())
    assert own == shared
    assert 1_000 * KIB < shared < 1_001 * KIB
    assert expected(repeated, Inspect()) == least, "its replies are of another type"
    repeated.encode(3, DIRECTORY)
    assert expected(repeated, Locate()) == least


def test_only_directories_and_statuses_are_repeated() -> None:
    assert Directory in RepeatedReplies(BELFAST)
    assert Done not in RepeatedReplies(BELFAST)
    assert Directory not in RepeatedReplies(BOLT)
    assert reply_size(Append(b""), Limits()) is None
