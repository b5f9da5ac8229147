"""Real time: what was acknowledged before a call began comes before it, and tails show it."""

from collections.abc import Callable
from typing import Any

import pytest

from anabranch.core.history.calls import Append, Fate, Look, Promote, Squash, Verdict
from anabranch.core.history.family import Family
from anabranch.core.history.order import order_violations
from anabranch.core.types import Kind, LogId

ROOT, FORK, RIVAL, SEVERED, BESIDE = (LogId(n) for n in range(1, 6))
OK, REFUSED, UNKNOWN = Verdict.OK, Verdict.REFUSED, Verdict.UNKNOWN

Tale = Any
"""Of conftest: test modules don't import one another."""


def says(tale: Tale) -> list[str]:
    return [str(each) for each in order_violations(Family(tale.history))]


def look(tale: Tale, tail: int, settled: int | None = None, log: LogId = ROOT) -> Look:
    made = Look(**tale.at(log), tail=tail, settled=tail if settled is None else settled)
    tale.say(made)
    return made


def overlapping(tale: Tale, record: int, invoked: int, returned: int, client: int) -> Append:
    call = Append(
        client=client, log=ROOT, invoked=invoked, returned=returned, verdict=OK, records=[record]
    )
    tale.say(call)
    return call


@pytest.mark.parametrize(
    ("first", "second", "right"),
    [
        ((0, 10), (20, 30), False),
        ((0, 10), (10, 30), True),
        ((0, 10), (9, 30), True),
        ((0, 50), (20, 30), True),
        ((20, 30), (0, 10), True),
    ],
    ids=["apart", "touching", "overlapping", "around", "reversed"],
)
def test_only_calls_that_overlap_may_stand_in_either_order(
    tale: Tale, first: tuple[int, int], second: tuple[int, int], right: bool
) -> None:
    """The second record stands before the first."""
    overlapping(tale, 10, *first, client=1)
    overlapping(tale, 11, *second, client=2)
    tale.end(ROOT, 11, 10)
    assert says(tale) == (
        [] if right else ["3 real time: root(1) holds 11 before 10, which was acknowledged first"]
    )


def test_an_append_without_an_answer_may_stand_anywhere_after_its_call(tale: Tale) -> None:
    late = Append(**tale.at(ROOT, UNKNOWN), records=[10])
    tale.say(late)
    tale.append(ROOT, 11, position=0)
    tale.end(ROOT, 11, 10)
    assert says(tale) == []
    late.invoked = 100
    tale.history.finals[0].records = [10, 11]
    assert len(says(tale)) == 1


def test_records_that_nobody_sent_have_no_time(tale: Tale) -> None:
    tale.append(ROOT, 10, position=0)
    tale.end(ROOT, 99, 10, 98)
    assert says(tale) == []


@pytest.mark.parametrize(("client", "right"), [(1, False), (2, True)])
def test_only_one_clients_appends_keep_the_order_of_their_calls(
    tale: Tale, client: int, right: bool
) -> None:
    overlapping(tale, 10, 0, 50, client=1)
    overlapping(tale, 11, 5, 50, client=client)
    tale.end(ROOT, 11, 10)
    wrong = ["3 session: root(1) holds 10 after what its client appended later"]
    assert says(tale) == ([] if right else wrong)


def test_a_clients_appends_to_two_logs_are_two_sessions(tale: Tale) -> None:
    tale.fork(FORK, ROOT, 0)
    first = tale.append(ROOT, 10)
    second = tale.append(FORK, 20)
    second.invoked, second.returned = first.invoked - 1, first.returned
    tale.end(ROOT, 10)
    tale.end(FORK, 10, 20, kind=Kind.CONTINUOUS)
    assert says(tale) == []


def inherits_what_was_sent_later(tale: Tale) -> None:
    tale.fork(FORK, ROOT, 1)
    tale.append(ROOT, 10, position=0)
    tale.end(ROOT, 10)
    tale.end(FORK, 10, kind=Kind.CONTINUOUS, fork_point=1)


def leaves_out_what_was_acknowledged(tale: Tale) -> None:
    tale.append(ROOT, 10, position=0)
    tale.fork(FORK, ROOT, 0)
    tale.end(ROOT, 10)
    tale.end(FORK, 10, kind=Kind.CONTINUOUS, fork_point=0)


def is_cut_after_another_position(tale: Tale) -> None:
    tale.append(ROOT, 10, 11, position=0)
    tale.fork(SEVERED, ROOT, 2, kind=Kind.SEVERED, past=0)
    tale.end(ROOT, 10, 11)
    tale.end(SEVERED, 10, 11, kind=Kind.SEVERED, fork_point=2)


FORKS: list[tuple[Callable[[Tale], None], str]] = [
    (inherits_what_was_sent_later, "fork-2 inherited 10 below its fork point, sent after the fork"),
    (
        leaves_out_what_was_acknowledged,
        "fork-2 has 10 past its fork point, acknowledged before the fork",
    ),
    (is_cut_after_another_position, "fork-4 was cut at 2, not after 0"),
]


@pytest.mark.parametrize(("tell", "said"), FORKS, ids=[tell.__name__ for tell, _ in FORKS])
def test_a_fork_point_that_is_elsewhere_is_found(
    tale: Tale, tell: Callable[[Tale], None], said: str
) -> None:
    tell(tale)
    assert f"7 fork point: {said}" in says(tale)


@pytest.mark.parametrize("more", [{"past": 0}, {"timed": True}])
def test_a_fork_at_a_chosen_place_may_leave_out_what_was_acknowledged(
    tale: Tale, more: dict[str, Any]
) -> None:
    tale.append(ROOT, 10, 11, position=0)
    tale.fork(SEVERED, ROOT, 1, kind=Kind.SEVERED, **more)
    tale.append(SEVERED, 40, position=1)
    tale.end(ROOT, 10, 11)
    tale.end(SEVERED, 10, 40, kind=Kind.SEVERED, fork_point=1)
    assert says(tale) == []


def test_a_read_may_not_give_what_was_sent_after_it(tale: Tale) -> None:
    tale.read(ROOT, 0, 10)
    tale.append(ROOT, 10, position=0)
    tale.end(ROOT, 10)
    assert "5 future: root(1) gave 10 before it was sent" in says(tale)


@pytest.mark.parametrize("known", ["append", "look", "fork"])
def test_a_tail_covers_all_that_was_known_before_it_was_asked_for(tale: Tale, known: str) -> None:
    tale.append(ROOT, 10, 11, position=None if known != "append" else 0)
    if known == "look":
        look(tale, 2)
    if known == "fork":
        tale.fork(FORK, ROOT, 2)
        tale.end(FORK, 10, 11, kind=Kind.CONTINUOUS, fork_point=2)
    look(tale, 1)
    tale.end(ROOT, 10, 11)
    assert says(tale) == ["5 tail: root(1) gave a tail of 1 when 2 was known"]


def test_a_fork_point_is_a_tail_of_the_parent(tale: Tale) -> None:
    tale.append(ROOT, 10, position=0)
    tale.fork(FORK, ROOT, 0)
    tale.end(ROOT, 10)
    tale.end(FORK, 10, kind=Kind.CONTINUOUS, fork_point=0)
    assert "5 tail: root(1) gave a fork point of 0 when 1 was known" in says(tale)


def test_a_tail_that_was_asked_for_at_the_same_time_may_be_shorter(tale: Tale) -> None:
    tale.say(Append(**tale.at(ROOT, UNKNOWN), records=[10]))
    early, late = look(tale, 1), look(tale, 0)
    late.invoked, late.returned = early.invoked, early.returned + 3
    tale.end(ROOT, 10)
    assert says(tale) == []


def test_a_settled_position_never_goes_back(tale: Tale) -> None:
    tale.append(ROOT, 10, position=0)
    look(tale, 1, 1)
    look(tale, 1, 0)
    tale.end(ROOT, 10)
    assert says(tale) == ["5 settled: root(1) gave settled position 0, lower than before"]


@pytest.mark.parametrize(("tail", "settled"), [(2, 1), (1, 2)])
def test_a_tail_past_the_last_one_is_from_the_future(tale: Tale, tail: int, settled: int) -> None:
    tale.append(ROOT, 10, position=0)
    look(tale, tail, settled)
    tale.end(ROOT, 10)
    assert says(tale) == [f"5 future: root(1) gave tail {tail}, in the end it is 1"]


def test_a_settled_position_covers_nothing_that_was_sent_later(tale: Tale) -> None:
    look(tale, 1)
    tale.append(ROOT, 10, position=0)
    tale.end(ROOT, 10)
    assert says(tale) == ["5 future: root(1) gave settled 1, whose last record came later"]


def test_a_settled_position_below_what_was_trimmed_is_not_looked_up(tale: Tale) -> None:
    tale.append(ROOT, 10, 11, position=0)
    look(tale, 2, 1)
    tale.end(ROOT, start=2)
    assert says(tale) == []


def test_what_a_squashed_log_gave_is_compared_with_nothing(tale: Tale) -> None:
    tale.fork(FORK, ROOT, 0)
    look(tale, 7, log=FORK)
    tale.say(Squash(**tale.at(FORK)))
    tale.end(ROOT)
    tale.end(FORK, fate=Fate.SQUASHED)
    assert says(tale) == []


def test_a_promoted_forks_tail_is_compared_with_its_parents(tale: Tale) -> None:
    tale.fork(FORK, ROOT, 0, promotable=True)
    look(tale, 7, log=FORK)
    tale.say(Promote(**tale.at(FORK)))
    tale.end(ROOT)
    tale.end(FORK, fate=Fate.PROMOTED)
    assert says(tale) == ["5 future: fork-2(2) gave tail 7, in the end it is 0"]


def test_refusals_say_nothing_of_tails(tale: Tale) -> None:
    tale.append(ROOT, 10, position=0)
    tale.say(Look(**tale.at(ROOT, REFUSED, "overloaded")))
    tale.end(ROOT, 10)
    assert says(tale) == []
