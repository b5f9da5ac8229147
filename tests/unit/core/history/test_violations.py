"""The history checker: a clean history passes; every kind of violation, made by hand, is found."""

from collections.abc import Callable
from typing import Any

import pytest

from anabranch.core.history.calls import (
    Append,
    Confirmation,
    Delivery,
    Failure,
    Fate,
    Look,
    MarkCursor,
    Promote,
    Read,
    ReadCursor,
    Redeem,
    Squash,
    Trim,
    Verdict,
)
from anabranch.core.types import Kind, LogId

ROOT, FORK, RIVAL, SEVERED, BESIDE = (LogId(n) for n in range(1, 6))
OK, REFUSED, UNKNOWN = Verdict.OK, Verdict.REFUSED, Verdict.UNKNOWN


Tale = Any
"""Of conftest: test modules don't import one another."""


def test_figure_4_is_a_clean_history(tale: Tale) -> None:
    tale.append(ROOT, 10, position=0)
    tale.fork(FORK, ROOT, 1)
    tale.append(FORK, 20, position=1)
    tale.append(ROOT, 11, position=1)
    tale.append(FORK, 21, position=3)
    tale.append(ROOT, 12, position=2)
    tale.read(FORK, 0, 10, 20, 11, 21, 12)
    tale.end(ROOT, 10, 11, 12)
    tale.end(FORK, 10, 20, 11, 21, 12, kind=Kind.CONTINUOUS, parent=ROOT, fork_point=1)
    assert tale.broken() == set()


def test_a_promotion_with_rivals_and_a_bystander_is_a_clean_history(tale: Tale) -> None:
    tale.promoted()
    assert tale.broken() == set()


def lost(tale: Tale) -> None:
    tale.append(ROOT, 10, position=0)
    tale.append(ROOT, 11, position=1)
    tale.end(ROOT, 10)


def lost_receipt(tale: Tale) -> None:
    tale.fork(FORK, ROOT, 0, promotable=True)
    tale.append(ROOT, 10)
    tale.say(Squash(**tale.at(FORK)))
    tale.end(ROOT)
    tale.end(FORK, fate=Fate.SQUASHED)


def doubled(tale: Tale) -> None:
    tale.append(ROOT, 10, position=0)
    tale.end(ROOT, 10, 10)


def invented(tale: Tale) -> None:
    tale.end(ROOT, 10)


def refused_but_there(tale: Tale) -> None:
    tale.say(Append(**tale.at(ROOT, REFUSED, "overloaded"), records=[10]))
    tale.end(ROOT, 10)


def swapped(tale: Tale) -> None:
    tale.fork(FORK, ROOT, 0)
    first, second = tale.append(ROOT, 10), tale.append(FORK, 20)
    assert first.returned < second.invoked
    tale.end(ROOT, 10)
    tale.end(FORK, 20, 10, kind=Kind.CONTINUOUS, parent=ROOT)


def overtaken_in_a_session(tale: Tale) -> None:
    for record, invoked in ((10, 20), (11, 21)):
        append = Append(client=1, log=ROOT, invoked=invoked, records=[record], position=11 - record)
        append.returned, append.verdict = 40, OK
        tale.say(append)
    tale.end(ROOT, 11, 10)


def torn(tale: Tale) -> None:
    tale.say(Append(**tale.at(ROOT, UNKNOWN), records=[10, 11]))
    tale.end(ROOT, 10)


def changed(tale: Tale) -> None:
    tale.say(Append(**tale.at(ROOT, UNKNOWN), records=[10]))
    tale.say(Append(**tale.at(ROOT, UNKNOWN), records=[11]))
    tale.read(ROOT, 0, 11)
    tale.end(ROOT, 10, 11)


def from_the_future(tale: Tale) -> None:
    tale.read(ROOT, 0, 10)
    tale.append(ROOT, 10, position=0)
    tale.end(ROOT, 10)


def short_tail(tale: Tale) -> None:
    tale.append(ROOT, 10, position=0)
    tale.say(Look(**tale.at(ROOT), tail=0, settled=0))
    tale.end(ROOT, 10)


def tail_goes_back(tale: Tale) -> None:
    tale.say(Append(**tale.at(ROOT, UNKNOWN), records=[10]))
    tale.say(Look(**tale.at(ROOT), tail=1, settled=1))
    tale.say(Look(**tale.at(ROOT), tail=1, settled=0))
    tale.end(ROOT, 10)


def leaked_to_the_parent(tale: Tale) -> None:
    tale.fork(FORK, ROOT, 0)
    tale.append(FORK, 20, position=0)
    tale.end(ROOT, 20)
    tale.end(FORK, 20, kind=Kind.CONTINUOUS, parent=ROOT)


def prefix_differs(tale: Tale) -> None:
    tale.say(Append(**tale.at(ROOT, UNKNOWN), records=[10]))
    tale.say(Append(**tale.at(ROOT, UNKNOWN), records=[11]))
    tale.fork(FORK, ROOT, 1)
    tale.end(ROOT, 10, 11)
    tale.end(FORK, 11, 10, kind=Kind.CONTINUOUS, parent=ROOT, fork_point=1)


def stops_inheriting(tale: Tale) -> None:
    tale.fork(FORK, ROOT, 0)
    tale.append(ROOT, 10, position=0)
    tale.end(ROOT, 10)
    tale.end(FORK, kind=Kind.CONTINUOUS, parent=ROOT)


def severed_inherits(tale: Tale) -> None:
    tale.append(ROOT, 10, position=0)
    tale.fork(SEVERED, ROOT, 1, kind=Kind.SEVERED)
    tale.append(ROOT, 11, position=1)
    tale.end(ROOT, 10, 11)
    tale.end(SEVERED, 10, 11, kind=Kind.SEVERED, parent=ROOT, fork_point=1)


def forked_past_its_point(tale: Tale) -> None:
    tale.append(ROOT, 10, position=0)
    tale.fork(SEVERED, ROOT, 1, kind=Kind.SEVERED)
    tale.append(ROOT, 11, position=1)
    tale.end(ROOT, 10, 11)
    tale.end(SEVERED, 10, 11, kind=Kind.SEVERED, parent=ROOT, fork_point=2)


def loser_survives(tale: Tale) -> None:
    root, beside = tale.promoted()
    root.records, beside.records = [10, 30, 20, 11], [10, 50, 30, 20, 11]
    root.tail = root.settled = 4
    beside.tail = beside.settled = 5


def winner_loses_a_record(tale: Tale) -> None:
    root, beside = tale.promoted()
    root.records, beside.records = [10, 11], [10, 50, 11]
    root.tail = root.settled = 2
    beside.tail = beside.settled = 3


def bystander_forgets_the_winners_records(tale: Tale) -> None:
    _, beside = tale.promoted()
    beside.records = [10, 50, 11]
    beside.tail = beside.settled = 3


def rival_lives_on(tale: Tale) -> None:
    tale.promoted()
    tale.history.finals.pop()
    tale.end(RIVAL, 10, 30, 11, kind=Kind.CONTINUOUS, parent=ROOT, fork_point=1, promotable=True)


def both_promoted(tale: Tale) -> None:
    tale.promoted()
    tale.history.finals[-1].fate = Fate.PROMOTED
    tale.say(Promote(**tale.at(RIVAL)))


def squashed_for_no_reason(tale: Tale) -> None:
    tale.fork(FORK, ROOT, 0)
    tale.end(ROOT)
    tale.end(FORK, fate=Fate.SQUASHED)


def expired_too_early(tale: Tale) -> None:
    tale.fork(FORK, ROOT, 0, lives=1_000)
    tale.say(Append(**tale.at(FORK, REFUSED, "squashed"), records=[20]))
    tale.end(ROOT)
    tale.end(FORK, fate=Fate.SQUASHED, expired=True)


def descendant_survives_a_squash(tale: Tale) -> None:
    tale.fork(FORK, ROOT, 0)
    tale.fork(BESIDE, FORK, 0)
    tale.say(Squash(**tale.at(FORK)))
    tale.end(ROOT)
    tale.end(FORK, fate=Fate.SQUASHED)
    tale.end(BESIDE, kind=Kind.CONTINUOUS, parent=FORK)


def appended_to_what_was_squashed(tale: Tale) -> None:
    tale.fork(FORK, ROOT, 0)
    tale.say(Squash(**tale.at(FORK)))
    tale.append(FORK, 20, position=0)
    tale.end(ROOT)
    tale.end(FORK, fate=Fate.SQUASHED)


def parent_read_past_the_point(tale: Tale) -> None:
    tale.promoted()
    tale.history.calls.insert(
        8,
        Read(
            client=1,
            log=ROOT,
            invoked=75,
            returned=76,
            verdict=OK,
            first=0,
            records=[10, 20],
            settled=2,
        ),
    )


def position_in_place_of_a_receipt(tale: Tale) -> None:
    tale.promoted()
    receipt = tale.history.calls[8]
    assert isinstance(receipt, Append)
    assert receipt.records == [11]
    receipt.position = 2


def receipt_for_nothing(tale: Tale) -> None:
    tale.append(ROOT, 10)
    tale.end(ROOT, 10)


def receipt_resolved_wrongly(tale: Tale) -> None:
    tale.promoted()
    redeemed = next(call for call in tale.history.calls if isinstance(call, Redeem))
    redeemed.position = 1


def bystander_takes_an_append(tale: Tale) -> None:
    _, beside = tale.promoted()
    tale.history.calls.insert(
        8,
        Append(client=1, log=BESIDE, invoked=75, returned=76, verdict=OK, records=[51], position=2),
    )
    beside.records = [10, 50, 51, 20, 11]
    beside.tail = beside.settled = 5


def bystander_shows_the_parents_records(tale: Tale) -> None:
    tale.promoted()
    tale.history.calls.insert(
        9,
        Read(
            client=1,
            log=BESIDE,
            invoked=85,
            returned=86,
            verdict=OK,
            first=0,
            records=[10, 50, 20],
            settled=3,
            tail=3,
        ),
    )


def trimmed_by_nobody(tale: Tale) -> None:
    tale.append(ROOT, 10, position=0)
    tale.end(ROOT, start=1)


def trim_undone(tale: Tale) -> None:
    tale.append(ROOT, 10, position=0)
    tale.say(Trim(**tale.at(ROOT), before=1))
    tale.end(ROOT, 10)


def trim_takes_from_a_fork(tale: Tale) -> None:
    tale.append(ROOT, 10, position=0)
    tale.fork(FORK, ROOT, 1)
    tale.say(Trim(**tale.at(ROOT), before=1))
    tale.end(ROOT, start=1)
    tale.end(FORK, kind=Kind.CONTINUOUS, parent=ROOT, fork_point=1, start=1)


def read_below_a_trim(tale: Tale) -> None:
    tale.append(ROOT, 10, position=0)
    tale.say(Trim(**tale.at(ROOT), before=1))
    tale.read(ROOT, 0, 10)
    tale.end(ROOT, start=1)


def stale_cursor(tale: Tale) -> None:
    tale.say(MarkCursor(**tale.at(ROOT), name="reader", position=1))
    tale.say(MarkCursor(**tale.at(ROOT), name="reader", position=2))
    tale.say(ReadCursor(**tale.at(ROOT), name="reader", position=1))
    tale.end(ROOT)


def cursor_of_a_fork_that_did_not_follow(tale: Tale) -> None:
    tale.fork(FORK, ROOT, 0, promotable=True)
    tale.say(MarkCursor(**tale.at(FORK), name="reader", position=0))
    tale.say(Promote(**tale.at(FORK)))
    tale.say(ReadCursor(**tale.at(ROOT), name="reader"))
    tale.end(ROOT)
    tale.end(FORK, fate=Fate.PROMOTED)


def cursor_that_gave_way_to_a_forks(tale: Tale) -> None:
    tale.append(ROOT, 10, position=0)
    tale.fork(FORK, ROOT, 1, promotable=True)
    tale.say(MarkCursor(**tale.at(ROOT), name="reader", position=0))
    tale.say(MarkCursor(**tale.at(FORK), name="reader", position=1))
    tale.say(Promote(**tale.at(FORK)))
    tale.say(ReadCursor(**tale.at(ROOT), name="reader", position=1))
    tale.end(ROOT, 10)
    tale.end(FORK, fate=Fate.PROMOTED)


def hole_in_a_stream(tale: Tale) -> None:
    tale.append(ROOT, 10, 11, position=0)
    tale.stream(ROOT, Delivery(at=50, first=1, records=[11]))
    tale.end(ROOT, 10, 11)


def delivered_twice(tale: Tale) -> None:
    tale.append(ROOT, 10, position=0)
    tale.stream(
        ROOT, Delivery(at=50, first=0, records=[10]), Delivery(at=51, first=0, records=[10])
    )
    tale.end(ROOT, 10)


def confirmed_what_changed(tale: Tale) -> None:
    tale.promoted()
    tale.stream(
        ROOT,
        Delivery(at=70, first=0, records=[10]),
        Delivery(at=80, first=1, records=[11], speculative=True),
        Confirmation(120, 2),
    )


def confirmed_what_was_not_delivered(tale: Tale) -> None:
    tale.append(ROOT, 10, position=0)
    tale.stream(ROOT, Confirmation(50, 1))
    tale.end(ROOT, 10)


def failed_what_was_final(tale: Tale) -> None:
    tale.append(ROOT, 10, position=0)
    tale.stream(ROOT, Delivery(at=50, first=0, records=[10]), Failure(51, 0))
    tale.end(ROOT, 10)


def settled_above_the_speculative(tale: Tale) -> None:
    tale.append(ROOT, 10, 11, position=0)
    tale.stream(
        ROOT,
        Delivery(at=50, first=0, records=[10], speculative=True),
        Delivery(at=51, first=1, records=[11]),
    )
    tale.end(ROOT, 10, 11)


VIOLATIONS: list[tuple[Callable[[Tale], None], str]] = [
    (lost, "B2 immutability"),
    (lost_receipt, "1 acknowledged"),
    (doubled, "1 exactly once"),
    (invented, "2 nothing unsent"),
    (refused_but_there, "2 nothing refused"),
    (swapped, "3 real time"),
    (overtaken_in_a_session, "3 session"),
    (torn, "B3 whole"),
    (changed, "B2 immutability"),
    (from_the_future, "5 future"),
    (short_tail, "5 tail"),
    (tail_goes_back, "5 settled"),
    (leaked_to_the_parent, "B7 isolation"),
    (prefix_differs, "B1 prefix"),
    (stops_inheriting, "B4 inheritance"),
    (severed_inherits, "B4 severed"),
    (forked_past_its_point, "7 fork point"),
    (loser_survives, "B7 isolation"),
    (winner_loses_a_record, "B2 immutability"),
    (bystander_forgets_the_winners_records, "B4 inheritance"),
    (rival_lives_on, "B10 first promote wins"),
    (both_promoted, "B10 first promote wins"),
    (squashed_for_no_reason, "8 squash"),
    (expired_too_early, "8 squash"),
    (descendant_survives_a_squash, "8 squash"),
    (appended_to_what_was_squashed, "8 ended"),
    (parent_read_past_the_point, "B9 hold"),
    (position_in_place_of_a_receipt, "B9 hold"),
    (receipt_for_nothing, "10 receipt"),
    (receipt_resolved_wrongly, "B2 immutability"),
    (bystander_takes_an_append, "6.2 blocked"),
    (bystander_shows_the_parents_records, "B9 hold"),
    (trimmed_by_nobody, "D8 trim"),
    (trim_undone, "D8 trim"),
    (trim_takes_from_a_fork, "D8 trim"),
    (read_below_a_trim, "D8 trim"),
    (stale_cursor, "3 cursor"),
    (cursor_of_a_fork_that_did_not_follow, "3 cursor"),
    (cursor_that_gave_way_to_a_forks, "3 cursor"),
    (hole_in_a_stream, "9 no holes"),
    (delivered_twice, "9 no holes"),
    (confirmed_what_changed, "B2 immutability"),
    (confirmed_what_was_not_delivered, "9 confirmation"),
    (failed_what_was_final, "9 final"),
    (settled_above_the_speculative, "9 order"),
]


@pytest.mark.parametrize(
    ("tell", "rule"), VIOLATIONS, ids=[tell.__name__ for tell, _ in VIOLATIONS]
)
def test_a_violation_is_found(tale: Tale, tell: Callable[[Tale], None], rule: str) -> None:
    tell(tale)
    assert rule in tale.broken()
