"""What a request to a shard may say: at each limit, and one past it."""

from typing import get_args

import pytest

from anabranch.core.errors import BadRequest
from anabranch.core.erwin.protocol.checks import check
from anabranch.core.erwin.protocol.messages import Data, Hello, Read, Subscribe, ToShard
from anabranch.core.producers import SEQUENCE_SPACE
from anabranch.core.sequencing.protocol.messages import Locate
from anabranch.core.types import NEVER
from anabranch.core.wire.numbers import NAME_BYTES_MAX
from anabranch.core.wire.session import Cancel, Credit

LONGEST = "n" * NAME_BYTES_MAX
SERVED: list[ToShard] = [
    Read(shard="a", start=0, bytes_max=1, records_max=1),
    Read(shard=LONGEST, start=NEVER - 1, bytes_max=NEVER, records_max=NEVER, wait_ms=-1),
    Subscribe(shard="a", start=0),
    Subscribe(shard=LONGEST, start=NEVER - 1),
    Data(epoch=0, lowest=0, batch=b""),
    Data(epoch=0, lowest=SEQUENCE_SPACE - 1, batch=b""),
    Hello(1, "cluster", "client"),
    Locate(),
    Credit(1, 1),
    Cancel(1),
]
REFUSED: list[tuple[ToShard, str]] = [
    (Read(shard="", start=0, bytes_max=1, records_max=1), "shard's name"),
    (Read(shard="a", start=-1, bytes_max=1, records_max=1), "read's start"),
    (Read(shard="a", start=NEVER, bytes_max=1, records_max=1), "read's start"),
    (Read(shard="a", start=0, bytes_max=0, records_max=1), "bytes_max"),
    (Read(shard="a", start=0, bytes_max=1, records_max=0), "records_max"),
    (Subscribe(shard=LONGEST + "n", start=0), "shard's name"),
    (Subscribe(shard="a", start=-1), "subscription's start"),
    (Data(epoch=0, lowest=-1, batch=b""), "lowest sequence"),
    (Data(epoch=0, lowest=SEQUENCE_SPACE, batch=b""), "lowest sequence"),
]


@pytest.mark.parametrize("message", SERVED)
def test_what_a_request_may_say_is_let_through(message: ToShard) -> None:
    check(message)


@pytest.mark.parametrize(("message", "part"), REFUSED)
def test_a_refusal_names_the_part(message: ToShard, part: str) -> None:
    with pytest.raises(BadRequest, match=part):
        check(message)


def test_every_request_is_among_those_that_are_tried() -> None:
    assert {type(each) for each in SERVED} == set(get_args(ToShard))
