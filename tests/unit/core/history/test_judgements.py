"""What the history checker makes of unknown, orphaned, speculative and stored calls."""

from typing import Any

import msgspec

from anabranch.core.history import History
from anabranch.core.history.calls import (
    Append,
    Call,
    Create,
    Delivery,
    Failure,
    Fate,
    Fork,
    MarkCursor,
    Promote,
    Read,
    ReadCursor,
    Redeem,
    Squash,
    Verdict,
)
from anabranch.core.types import Kind, LogId

ROOT, FORK, RIVAL, SEVERED, BESIDE = (LogId(n) for n in range(1, 6))
OK, REFUSED, UNKNOWN = Verdict.OK, Verdict.REFUSED, Verdict.UNKNOWN


Tale = Any
"""Of conftest: test modules don't import one another."""


def test_reliability_3_2_unknown_appends_may_be_there_once_or_not(tale: Tale) -> None:
    tale.say(Append(**tale.at(ROOT, UNKNOWN), records=[10, 11]))
    tale.say(Append(**tale.at(ROOT, UNKNOWN), records=[12]))
    tale.end(ROOT, 12)
    assert tale.broken() == set()


def test_a_fork_whose_answer_was_lost_is_known_by_its_name(tale: Tale) -> None:
    tale.append(ROOT, 10, position=0)
    untold = tale.at(LogId(-1), UNKNOWN) | {"name": "fork-2", "parent": ROOT}
    tale.say(Fork(**untold, kind=Kind.CONTINUOUS))
    tale.end(ROOT, 10)
    tale.end(FORK, 10, kind=Kind.CONTINUOUS, parent=ROOT, fork_point=1)
    assert tale.broken() == set()


def test_a_cursor_of_a_promoted_fork_is_the_parents_until_that_has_its_own(tale: Tale) -> None:
    tale.append(ROOT, 10, 11, position=0)
    tale.fork(FORK, ROOT, 2, promotable=True)
    tale.say(MarkCursor(**tale.at(FORK), name="reader", position=2))
    tale.say(Promote(**tale.at(FORK)))
    tale.say(ReadCursor(**tale.at(ROOT), name="reader", position=2))
    tale.say(MarkCursor(**tale.at(ROOT), name="reader", position=1))
    tale.say(ReadCursor(**tale.at(ROOT), name="reader", position=1))
    tale.end(ROOT, 10, 11)
    tale.end(FORK, fate=Fate.PROMOTED)
    assert tale.broken() == set()


def test_an_orphan_keeps_what_its_squashed_parent_had(tale: Tale) -> None:
    tale.fork(FORK, ROOT, 0)
    tale.append(FORK, 20, position=0)
    tale.fork(SEVERED, FORK, 1, kind=Kind.SEVERED, past=0)
    tale.say(Squash(**tale.at(FORK)))
    tale.append(SEVERED, 40, position=1)
    tale.end(ROOT)
    tale.end(FORK, fate=Fate.SQUASHED)
    tale.end(SEVERED, 20, 40, kind=Kind.SEVERED, parent=FORK, fork_point=1)
    assert tale.broken() == set()


def test_a_subscriber_of_the_parent_is_told_what_the_promotion_moved(tale: Tale) -> None:
    tale.promoted()
    tale.stream(
        ROOT,
        Delivery(at=70, first=0, records=[10]),
        Delivery(at=80, first=1, records=[11], speculative=True),
        Failure(120, 1),
        Delivery(at=121, first=1, records=[20, 11]),
    )
    assert tale.broken() == set()


def test_every_kind_of_call_is_judged_alike_after_storage(tale: Tale) -> None:
    tale.promoted()
    stored = msgspec.json.encode(tale.history)
    back = msgspec.json.decode(stored, type=History)
    assert back == tale.history
    assert {type(call) for call in back.calls} >= {Create, Fork, Append, Promote, Redeem, Read}
    assert all(isinstance(call, Call) for call in back.calls)
