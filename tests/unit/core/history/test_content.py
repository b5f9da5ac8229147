"""What logs hold in the end, compared with all that anybody was told of them."""

from collections.abc import Callable
from typing import Any

import pytest

from anabranch.core.history.calls import (
    Append,
    Delivery,
    Fate,
    Read,
    Redeem,
    Squash,
    Stream,
    Trim,
    Verdict,
)
from anabranch.core.history.content import content_violations
from anabranch.core.history.family import Family
from anabranch.core.types import Kind, LogId

ROOT, FORK, RIVAL, SEVERED, BESIDE = (LogId(n) for n in range(1, 6))
OK, REFUSED, UNKNOWN = Verdict.OK, Verdict.REFUSED, Verdict.UNKNOWN

Tale = Any
"""Of conftest: test modules don't import one another."""


def found(tale: Tale) -> list[tuple[str, str]]:
    return [(each.rule, each.says) for each in content_violations(Family(tale.history))]


def rules(tale: Tale) -> set[str]:
    return {rule for rule, _ in found(tale)}


def fewer_records_than_settled(tale: Tale) -> None:
    tale.append(ROOT, 10, position=0)
    tale.end(ROOT, 10).settled = 2


def settled_past_the_tail(tale: Tale) -> None:
    tale.append(ROOT, 10, 11, position=0)
    tale.end(ROOT, 10, 11).tail = 1


def a_batch_with_a_stranger_in_it(tale: Tale) -> None:
    tale.say(Append(**tale.at(ROOT, UNKNOWN), records=[10, 11]))
    tale.say(Append(**tale.at(ROOT, UNKNOWN), records=[12]))
    tale.end(ROOT, 10, 12, 11)


def a_batch_whose_end_is_missing(tale: Tale) -> None:
    tale.say(Append(**tale.at(ROOT, UNKNOWN), records=[10, 11]))
    tale.end(ROOT, 10)


def a_batch_in_reverse(tale: Tale) -> None:
    tale.say(Append(**tale.at(ROOT, UNKNOWN), records=[10, 11]))
    tale.end(ROOT, 11, 10)


def two_readers_of_a_squashed_fork_who_differ(tale: Tale) -> None:
    tale.fork(FORK, ROOT, 0)
    tale.say(Append(**tale.at(FORK, UNKNOWN), records=[20]))
    tale.say(Append(**tale.at(FORK, UNKNOWN), records=[21]))
    tale.read(FORK, 0, 20)
    tale.read(FORK, 0, 21)
    tale.say(Squash(**tale.at(FORK)))
    tale.end(ROOT)
    tale.end(FORK, fate=Fate.SQUASHED)


def a_squashed_fork_that_differed_below_its_fork_point(tale: Tale) -> None:
    tale.append(ROOT, 10, position=0)
    tale.fork(FORK, ROOT, 1)
    tale.say(Append(**tale.at(ROOT, UNKNOWN), records=[11]))
    tale.read(FORK, 0, 11)
    tale.say(Squash(**tale.at(FORK)))
    tale.end(ROOT, 10)
    tale.end(FORK, fate=Fate.SQUASHED)


def a_subscription_that_was_given_another_record(tale: Tale) -> None:
    tale.append(ROOT, 10, position=0)
    tale.say(Append(**tale.at(ROOT, UNKNOWN), records=[11]))
    tale.stream(ROOT, Delivery(at=90, first=0, records=[11]))
    tale.end(ROOT, 10)


def a_receipt_redeemed_in_a_log_without_its_record(tale: Tale) -> None:
    tale.append(ROOT, 10)
    tale.append(ROOT, 11, position=1)
    tale.say(Redeem(**tale.at(ROOT), records=[10], into=ROOT, position=1))
    tale.end(ROOT, 10, 11)


def records_that_are_gone_from_a_receipt(tale: Tale) -> None:
    tale.append(ROOT, 10)
    tale.end(ROOT)


def an_inherited_record_out_of_its_parents_order(tale: Tale) -> None:
    tale.fork(FORK, ROOT, 0)
    tale.append(ROOT, 10, position=0)
    tale.append(ROOT, 11, position=1)
    tale.end(ROOT, 10, 11)
    tale.end(FORK, 11, 10, kind=Kind.CONTINUOUS, parent=ROOT)


def an_inherited_record_out_of_order_while_one_is_undecided(tale: Tale) -> None:
    an_inherited_record_out_of_its_parents_order(tale)
    tale.history.finals[0].tail += 1


def two_origins_of_one_record(tale: Tale) -> None:
    tale.append(ROOT, 10, position=0)
    for origin in ((ROOT, 0), (ROOT, 1)):
        read = tale.read(ROOT, 0, 10)
        read.origins = [origin]
    tale.end(ROOT, 10)


def two_records_of_one_origin(tale: Tale) -> None:
    tale.append(ROOT, 10, 11, position=0)
    tale.end(ROOT, 10, 11, origins=[(ROOT, 0), (ROOT, 0)])


def an_origin_in_a_log_that_was_not_appended_to(tale: Tale) -> None:
    tale.append(ROOT, 10, position=0)
    tale.end(ROOT, 10, origins=[(FORK, 0)])


VIOLATIONS: list[tuple[Callable[[Tale], None], str]] = [
    (fewer_records_than_settled, "B3 density"),
    (settled_past_the_tail, "B3 density"),
    (a_batch_with_a_stranger_in_it, "B3 whole"),
    (a_batch_whose_end_is_missing, "B3 whole"),
    (a_batch_in_reverse, "B3 whole"),
    (two_readers_of_a_squashed_fork_who_differ, "B2 immutability"),
    (a_squashed_fork_that_differed_below_its_fork_point, "B2 immutability"),
    (a_subscription_that_was_given_another_record, "B2 immutability"),
    (a_receipt_redeemed_in_a_log_without_its_record, "B2 immutability"),
    (records_that_are_gone_from_a_receipt, "1 acknowledged"),
    (an_inherited_record_out_of_its_parents_order, "B4 inheritance"),
    (an_inherited_record_out_of_order_while_one_is_undecided, "B4 inheritance"),
    (two_origins_of_one_record, "7 origin"),
    (two_records_of_one_origin, "7 origin"),
    (an_origin_in_a_log_that_was_not_appended_to, "7 origin"),
]


@pytest.mark.parametrize(
    ("tell", "rule"), VIOLATIONS, ids=[tell.__name__ for tell, _ in VIOLATIONS]
)
def test_exactly_this_violation_is_found(
    tale: Tale, tell: Callable[[Tale], None], rule: str
) -> None:
    tell(tale)
    assert rules(tale) == {rule}


def a_batch_that_was_trimmed_in_its_middle(tale: Tale) -> None:
    tale.append(ROOT, 10, 11, position=0)
    tale.say(Trim(**tale.at(ROOT), before=1))
    tale.end(ROOT, 11, start=1)


def a_receipt_of_what_was_trimmed(tale: Tale) -> None:
    tale.append(ROOT, 10)
    tale.say(Trim(**tale.at(ROOT), before=1))
    tale.end(ROOT, start=1)


def a_receipt_of_what_is_not_settled(tale: Tale) -> None:
    tale.append(ROOT, 10)
    tale.end(ROOT).tail = 1


def a_reader_of_what_was_trimmed_later(tale: Tale) -> None:
    tale.append(ROOT, 10, 11, position=0)
    tale.read(ROOT, 0, 10, 11)
    tale.say(Trim(**tale.at(ROOT), before=1))
    tale.end(ROOT, 11, start=1)


def two_readers_of_a_squashed_fork_who_agree(tale: Tale) -> None:
    tale.fork(FORK, ROOT, 0)
    tale.append(FORK, 20, position=0)
    tale.read(FORK, 0, 20)
    tale.read(FORK, 0, 20)
    tale.say(Squash(**tale.at(FORK)))
    tale.end(ROOT)
    tale.end(FORK, fate=Fate.SQUASHED)


def a_fork_that_was_trimmed_past_its_fork_point(tale: Tale) -> None:
    tale.fork(FORK, ROOT, 0)
    tale.append(ROOT, 10, position=0)
    tale.append(ROOT, 11, position=1)
    tale.say(Trim(**tale.at(FORK), before=1))
    tale.end(ROOT, 10, 11)
    tale.end(FORK, 11, kind=Kind.CONTINUOUS, parent=ROOT, start=1)


def a_speculative_record_that_came_to_nothing(tale: Tale) -> None:
    tale.append(ROOT, 10, position=0)
    tale.say(Append(**tale.at(ROOT, UNKNOWN), records=[11]))
    ahead = Delivery(at=90, first=0, records=[11], speculative=True)
    tale.say(Stream(**tale.at(ROOT), start=0, pushes=[ahead]))
    tale.end(ROOT, 10)


@pytest.mark.parametrize(
    "tell",
    [
        a_batch_that_was_trimmed_in_its_middle,
        a_receipt_of_what_was_trimmed,
        a_receipt_of_what_is_not_settled,
        a_reader_of_what_was_trimmed_later,
        two_readers_of_a_squashed_fork_who_agree,
        a_fork_that_was_trimmed_past_its_fork_point,
        a_speculative_record_that_came_to_nothing,
    ],
)
def test_a_correct_history_is_accepted(tale: Tale, tell: Callable[[Tale], None]) -> None:
    tell(tale)
    assert found(tale) == []


def test_a_finding_names_the_log_the_position_and_what_is_there(tale: Tale) -> None:
    tale.append(ROOT, 10, position=0)
    tale.say(Append(**tale.at(ROOT, UNKNOWN), records=[11]))
    tale.say(Read(**tale.at(ROOT), first=0, records=[11]))
    tale.end(ROOT, 10)
    ((_, says),) = found(tale)
    assert says == "a read of root(1) gave [11] at 0, but in the end root(1) holds [10] there"


def test_long_findings_are_cut_short(tale: Tale) -> None:
    tale.say(Append(**tale.at(ROOT, UNKNOWN), records=list(range(20, 26))))
    tale.append(ROOT, *range(10, 16), position=0)
    tale.say(Read(**tale.at(ROOT), first=0, records=list(range(20, 26))))
    tale.end(ROOT, *range(10, 16))
    ((_, says),) = found(tale)
    assert "gave [20, 21, 22, 23] and 2 more at 0" in says
