"""The history checker: a clean history passes; every kind of violation, made by hand, is found."""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from anabranch.core.history import History, check
from anabranch.core.history.calls import (
    AnyCall,
    Append,
    Call,
    Confirmation,
    Create,
    Delivery,
    Failure,
    Fate,
    Final,
    Fork,
    Look,
    MarkCursor,
    Promote,
    Push,
    Read,
    ReadCursor,
    Redeem,
    Squash,
    Stream,
    Trim,
    Verdict,
)
from anabranch.core.types import Kind, LogId

ROOT, FORK, RIVAL, SEVERED, BESIDE = (LogId(n) for n in range(1, 6))
OK, REFUSED, UNKNOWN = Verdict.OK, Verdict.REFUSED, Verdict.UNKNOWN


class Tale:
    """A history told one call after another, unless times are given."""

    def __init__(self) -> None:
        self.history = History()
        self.now = 0

    def say(self, call: AnyCall) -> AnyCall:
        if call.verdict is not UNKNOWN and call.returned > 1 << 60:
            call.returned = call.invoked + 5
        self.now = max(self.now, call.invoked + 10)
        self.history.calls.append(call)
        return call

    def at(self, log: LogId, verdict: Verdict = OK, code: str = "") -> dict[str, Any]:
        return {"client": 1, "log": log, "invoked": self.now, "verdict": verdict, "code": code}

    def create(self) -> None:
        self.say(Create(**self.at(ROOT), name="root"))

    def fork(self, log: LogId, parent: LogId, point: int, **more: Any) -> Fork:
        more = {"kind": Kind.CONTINUOUS, "name": f"fork-{log}"} | more
        fork = Fork(**self.at(log), parent=parent, fork_point=point, **more)
        self.say(fork)
        return fork

    def append(self, log: LogId, *records: int, position: int | None = None) -> Append:
        append = Append(**self.at(log), records=list(records), position=position)
        self.say(append)
        return append

    def read(self, log: LogId, first: int, *records: int) -> Read:
        end = first + len(records)
        read = Read(**self.at(log), first=first, records=list(records), tail=end, settled=end)
        self.say(read)
        return read

    def stream(self, log: LogId, *pushes: Push) -> None:
        self.say(Stream(**self.at(log), start=0, pushes=list(pushes)))

    def end(self, log: LogId, *records: int, **more: Any) -> Final:
        start = more.get("start", 0)
        assert isinstance(start, int)
        tail = start + len(records)
        more = {"name": "root" if log == ROOT else f"fork-{log}", "settled": tail} | more
        final = Final(log=log, tail=tail, records=list(records), **more)
        self.history.finals.append(final)
        return final

    def broken(self) -> set[str]:
        stored = msgspec.msgpack.encode(self.history)
        return {violation.rule for violation in check(msgspec.msgpack.decode(stored, type=History))}


@pytest.fixture
def tale() -> Tale:
    told = Tale()
    told.create()
    return told


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


def promoted(tale: Tale) -> tuple[Final, Final]:
    """Two promotable rivals with a bystander: FORK wins, RIVAL is squashed, BESIDE gets the +k."""
    tale.append(ROOT, 10, position=0)
    tale.fork(BESIDE, ROOT, 1)
    tale.append(BESIDE, 50, position=1)
    tale.fork(FORK, ROOT, 1, promotable=True)
    tale.fork(RIVAL, ROOT, 1, promotable=True)
    tale.append(FORK, 20, position=1)
    tale.append(RIVAL, 30, position=1)
    tale.append(ROOT, 11)
    tale.read(FORK, 0, 10, 20, 11)
    tale.say(Promote(**tale.at(FORK), squashed=["fork-3"]))
    tale.say(Redeem(**tale.at(ROOT), records=[11], into=ROOT, position=2))
    tale.read(ROOT, 0, 10, 20, 11)
    root = tale.end(ROOT, 10, 20, 11)
    beside = tale.end(BESIDE, 10, 50, 20, 11, kind=Kind.CONTINUOUS, parent=ROOT, fork_point=1)
    tale.end(FORK, fate=Fate.PROMOTED)
    tale.end(RIVAL, fate=Fate.SQUASHED)
    return root, beside


def test_a_promotion_with_rivals_and_a_bystander_is_a_clean_history(tale: Tale) -> None:
    promoted(tale)
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
    root, beside = promoted(tale)
    root.records, beside.records = [10, 30, 20, 11], [10, 50, 30, 20, 11]
    root.tail = root.settled = 4
    beside.tail = beside.settled = 5


def winner_loses_a_record(tale: Tale) -> None:
    root, beside = promoted(tale)
    root.records, beside.records = [10, 11], [10, 50, 11]
    root.tail = root.settled = 2
    beside.tail = beside.settled = 3


def bystander_forgets_the_winners_records(tale: Tale) -> None:
    _, beside = promoted(tale)
    beside.records = [10, 50, 11]
    beside.tail = beside.settled = 3


def rival_lives_on(tale: Tale) -> None:
    promoted(tale)
    tale.history.finals.pop()
    tale.end(RIVAL, 10, 30, 11, kind=Kind.CONTINUOUS, parent=ROOT, fork_point=1, promotable=True)


def both_promoted(tale: Tale) -> None:
    promoted(tale)
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
    promoted(tale)
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
    promoted(tale)
    receipt = tale.history.calls[8]
    assert isinstance(receipt, Append)
    assert receipt.records == [11]
    receipt.position = 2


def receipt_for_nothing(tale: Tale) -> None:
    tale.append(ROOT, 10)
    tale.end(ROOT, 10)


def receipt_resolved_wrongly(tale: Tale) -> None:
    promoted(tale)
    redeemed = next(call for call in tale.history.calls if isinstance(call, Redeem))
    redeemed.position = 1


def bystander_takes_an_append(tale: Tale) -> None:
    _, beside = promoted(tale)
    tale.history.calls.insert(
        8,
        Append(client=1, log=BESIDE, invoked=75, returned=76, verdict=OK, records=[51], position=2),
    )
    beside.records = [10, 50, 51, 20, 11]
    beside.tail = beside.settled = 5


def bystander_shows_the_parents_records(tale: Tale) -> None:
    promoted(tale)
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
    promoted(tale)
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
    promoted(tale)
    tale.stream(
        ROOT,
        Delivery(at=70, first=0, records=[10]),
        Delivery(at=80, first=1, records=[11], speculative=True),
        Failure(120, 1),
        Delivery(at=121, first=1, records=[20, 11]),
    )
    assert tale.broken() == set()


def test_every_kind_of_call_is_judged_alike_after_storage(tale: Tale) -> None:
    promoted(tale)
    stored = msgspec.json.encode(tale.history)
    back = msgspec.json.decode(stored, type=History)
    assert back == tale.history
    assert {type(call) for call in back.calls} >= {Create, Fork, Append, Promote, Redeem, Read}
    assert all(isinstance(call, Call) for call in back.calls)
