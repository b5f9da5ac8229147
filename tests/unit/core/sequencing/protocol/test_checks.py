"""What a request to a sequencing replica may say: at each limit, and one past it."""

from typing import get_args

import pytest

from anabranch.core.errors import BadRequest
from anabranch.core.producers import REQUEST_EPOCH, SEQUENCE_SPACE
from anabranch.core.sequencing.protocol.checks import check
from anabranch.core.sequencing.protocol.ids import AppendId
from anabranch.core.sequencing.protocol.messages import (
    Append,
    AppendMeta,
    AskTail,
    FindPosition,
    Hello,
    Inspect,
    Locate,
    SetShardOpen,
    Survey,
    ToSequencer,
    Trim,
)
from anabranch.core.types import NEVER
from anabranch.core.wire.numbers import NAME_BYTES_MAX
from anabranch.core.wire.session import Cancel

ID, LAST = AppendId(0, 0, 0), AppendId((1 << 63) - 1, REQUEST_EPOCH, SEQUENCE_SPACE - 1)
LONGEST = "n" * NAME_BYTES_MAX

SERVED: list[ToSequencer] = [
    Append(0, 0, b""),
    Append(NEVER - 1, SEQUENCE_SPACE - 1, b""),
    AppendMeta(0, 0, ID, 1, 1, "a"),
    AppendMeta(NEVER - 1, SEQUENCE_SPACE - 1, LAST, 1, 1, LONGEST, bytes(8)),
    FindPosition(ID),
    FindPosition(LAST),
    AskTail(0),
    Trim(0),
    Trim(NEVER - 1),
    SetShardOpen(LONGEST, True),
    Hello(1, "cluster", "client"),
    Locate(),
    Inspect(),
    Survey(),
    Cancel(1),
]
REFUSED: list[tuple[ToSequencer, str]] = [
    (Append(-1, 0, b""), "view"),
    (Append(NEVER, 0, b""), "view"),
    (Append(0, -1, b""), "lowest sequence"),
    (Append(0, SEQUENCE_SPACE, b""), "lowest sequence"),
    (AppendMeta(-1, 0, ID, 1, 1, "a"), "view"),
    (AppendMeta(0, -1, ID, 1, 1, "a"), "lowest sequence"),
    (AppendMeta(0, 0, AppendId(-1, 0, 0), 1, 1, "a"), "producer"),
    (AppendMeta(0, 0, ID, 0, 1, "a"), "count"),
    (AppendMeta(0, 0, ID, SEQUENCE_SPACE, 1, "a"), "count"),
    (AppendMeta(0, 0, ID, 1, 0, "a"), "size"),
    (AppendMeta(0, 0, ID, 1, 1, ""), "shard's name"),
    (AppendMeta(0, 0, ID, 1, 1, "a", b"7"), "digest"),
    (AppendMeta(0, 0, ID, 1, 1, "a", bytes(9)), "digest"),
    (FindPosition(AppendId(1 << 63, 0, 0)), "producer"),
    (FindPosition(AppendId(0, REQUEST_EPOCH + 1, 0)), "epoch"),
    (FindPosition(AppendId(0, -1, 0)), "epoch"),
    (FindPosition(AppendId(0, 0, SEQUENCE_SPACE)), "sequence"),
    (FindPosition(AppendId(0, 0, -1)), "sequence"),
    (AskTail(-1), "view"),
    (Trim(-1), "position"),
    (Trim(NEVER), "position"),
]


@pytest.mark.parametrize("message", SERVED)
def test_what_a_request_may_say_is_let_through(message: ToSequencer) -> None:
    check(message)


@pytest.mark.parametrize(("message", "part"), REFUSED)
def test_a_refusal_names_the_part(message: ToSequencer, part: str) -> None:
    with pytest.raises(BadRequest, match=part):
        check(message)


def test_every_request_is_among_those_that_are_tried() -> None:
    assert {type(each) for each in SERVED} == set(get_args(ToSequencer))
