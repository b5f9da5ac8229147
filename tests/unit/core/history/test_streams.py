"""What a subscriber may be given, push by push."""

import pytest

from anabranch.core.history.calls import (
    Append,
    Confirmation,
    Create,
    Delivery,
    Failure,
    Final,
    History,
    Push,
    Stream,
    Verdict,
)
from anabranch.core.history.family import Family
from anabranch.core.history.streams import stream_violations
from anabranch.core.types import LogId

ROOT = LogId(1)
OK = Verdict.OK


def sure(first: int, *records: int) -> Delivery:
    return Delivery(at=50, first=first, records=list(records))


def ahead(first: int, *records: int) -> Delivery:
    return Delivery(at=50, first=first, records=list(records), speculative=True)


def yes(up_to: int) -> Confirmation:
    return Confirmation(60, up_to)


def no(since: int) -> Failure:
    return Failure(60, since)


def rules(*pushes: Push, start: int = 0) -> set[str]:
    """Of a log with records 10 to 13 at 0 to 3."""
    history = History(
        [
            Create(client=1, log=ROOT, invoked=0, returned=1, verdict=OK, name="root"),
            Append(client=1, log=ROOT, invoked=2, returned=3, verdict=OK, records=[10, 11, 12, 13]),
            Stream(
                client=1,
                log=ROOT,
                invoked=4,
                returned=90,
                verdict=OK,
                start=start,
                pushes=list(pushes),
            ),
        ],
        [Final(log=ROOT, name="root", tail=4, settled=4, records=[10, 11, 12, 13])],
    )
    return {each.rule for each in stream_violations(Family(history))}


RIGHT: list[tuple[str, list[Push]]] = [
    ("nothing", []),
    ("settled records in pieces", [sure(0, 10), sure(1, 11, 12), sure(3, 13)]),
    ("a prediction that is confirmed", [ahead(0, 10, 11), yes(2), sure(2, 12)]),
    ("a confirmation in pieces", [ahead(0, 10, 11), yes(1), yes(2)]),
    ("a confirmation of what was confirmed", [ahead(0, 10), yes(1), yes(1), yes(0)]),
    ("predictions in pieces", [ahead(0, 10), ahead(1, 11), yes(1), ahead(2, 12), yes(3)]),
    ("a failure and what came in its place", [ahead(0, 10, 99), no(1), ahead(1, 11), yes(2)]),
    ("a failure of all", [ahead(0, 98, 99), no(0), sure(0, 10, 11)]),
    ("a failure of nothing", [ahead(0, 10), no(1), yes(1)]),
    ("a failure past what was seen", [ahead(0, 10), no(7), yes(1)]),
    ("a wrong prediction that is still open", [ahead(0, 98, 99)]),
]


@pytest.mark.parametrize("pushes", [pushes for _, pushes in RIGHT], ids=[name for name, _ in RIGHT])
def test_a_correct_stream_is_accepted(pushes: list[Push]) -> None:
    assert rules(*pushes) == set()


WRONG: list[tuple[str, str, list[Push]]] = [
    ("a hole", "9 no holes", [sure(0, 10), sure(2, 12)]),
    ("a hole at the start", "9 no holes", [sure(1, 11)]),
    ("a repetition", "9 no holes", [sure(0, 10), sure(0, 10)]),
    ("a hole in predictions", "9 no holes", [ahead(0, 10), ahead(2, 12)]),
    ("a prediction again, not failed", "9 no holes", [ahead(0, 10, 11), ahead(1, 11)]),
    ("what failed is not given again", "9 no holes", [ahead(0, 10, 11), no(1), ahead(2, 12)]),
    ("settled past a prediction", "9 order", [ahead(0, 10), sure(1, 11)]),
    ("a confirmation of too much", "9 confirmation", [ahead(0, 10), yes(2)]),
    ("a confirmation of what failed", "9 confirmation", [ahead(0, 10, 11), no(1), yes(2)]),
    ("a confirmation of nothing", "9 confirmation", [yes(1)]),
    ("a failure of what was confirmed", "9 final", [ahead(0, 10, 11), yes(2), no(1)]),
    ("a failure of what was settled", "9 final", [sure(0, 10), no(0)]),
    ("a confirmation of a wrong record", "B2 immutability", [ahead(0, 10, 99), yes(2)]),
]


@pytest.mark.parametrize(
    ("rule", "pushes"), [case[1:] for case in WRONG], ids=[case[0] for case in WRONG]
)
def test_a_wrong_stream_is_found(rule: str, pushes: list[Push]) -> None:
    assert rules(*pushes) == {rule}


def test_a_subscription_begins_where_it_was_asked_to() -> None:
    assert rules(sure(2, 12), start=2) == set()
    assert rules(sure(0, 10), start=2) == {"9 no holes"}
    assert rules(ahead(2, 12), no(1), start=2) == {"9 final"}


def test_every_subscription_is_judged_by_itself() -> None:
    """A hole in one is found though another had none."""
    history = History(
        [
            Create(client=1, log=ROOT, invoked=0, returned=1, verdict=OK, name="root"),
            Stream(client=1, log=ROOT, invoked=4, start=0, pushes=[sure(0)]),
            Stream(client=2, log=ROOT, invoked=4, start=0, pushes=[sure(1)]),
        ],
        [Final(log=ROOT, name="root")],
    )
    assert [each.rule for each in stream_violations(Family(history))] == ["9 no holes"]
