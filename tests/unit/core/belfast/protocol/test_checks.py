"""What a request may say: at each limit, and one past it."""

from typing import get_args

import pytest

from anabranch.core.belfast.protocol.checks import MODULUS_END, check
from anabranch.core.belfast.protocol.messages import (
    Append,
    Hello,
    Inspect,
    Join,
    Leave,
    Locate,
    Subscribe,
    ToServer,
    Trim,
    Where,
)
from anabranch.core.errors import BadRequest
from anabranch.core.types import NEVER
from anabranch.core.wire.numbers import NAME_BYTES_MAX
from anabranch.core.wire.session import Cancel, Credit

LONGEST = "n" * NAME_BYTES_MAX
SERVED: list[ToServer] = [
    Subscribe("a", 0),
    Subscribe(LONGEST, NEVER - 1),
    Subscribe("a", 0, Where(key_modulus=MODULUS_END - 1, key_remainder=MODULUS_END - 1)),
    Subscribe("a", 0, Where(key_prefix=b"", header="h", header_value=b"v")),
    Trim(0),
    Trim(NEVER - 1),
    Leave("a"),
    Join(LONGEST),
    Hello(1, "cluster", "client"),
    Append(b""),
    Credit(1, 1),
    Cancel(1),
    Locate(),
    Inspect(),
]
REFUSED: list[tuple[ToServer, str]] = [
    (Subscribe("", 0), "shard's name"),
    (Subscribe(LONGEST + "n", 0), "shard's name"),
    (Subscribe("é" * (NAME_BYTES_MAX // 2 + 1), 0), "shard's name"),
    (Subscribe("a", -1), "subscription's start"),
    (Subscribe("a", NEVER), "subscription's start"),
    (Subscribe("a", 0, Where(key_modulus=-1)), "key_modulus"),
    (Subscribe("a", 0, Where(key_modulus=MODULUS_END)), "key_modulus"),
    (Subscribe("a", 0, Where(key_remainder=-1)), "key_remainder"),
    (Subscribe("a", 0, Where(key_remainder=MODULUS_END)), "key_remainder"),
    (Trim(-1), "trim's position"),
    (Trim(NEVER), "trim's position"),
    (Leave(""), "shard's name"),
    (Join(LONGEST + "n"), "shard's name"),
]


@pytest.mark.parametrize("message", SERVED)
def test_what_a_request_may_say_is_let_through(message: ToServer) -> None:
    check(message)


@pytest.mark.parametrize(("message", "part"), REFUSED)
def test_a_refusal_names_the_part(message: ToServer, part: str) -> None:
    with pytest.raises(BadRequest, match=part):
        check(message)


def test_every_request_is_among_those_that_are_tried() -> None:
    tried = {type(each) for each in SERVED}
    assert tried == set(get_args(ToServer))
