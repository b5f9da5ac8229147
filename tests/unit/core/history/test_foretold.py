"""What a log with a predetermined order may show its clients, and what it may not."""

from anabranch.core.history.calls import Verdict
from anabranch.core.history.foretold import (
    Account,
    Placing,
    Resumable,
    Resumed,
    Settled,
    Shown,
    Sight,
    Voided,
    Watching,
    judge,
)


def account(*sights: Sight) -> Account:
    """Two shards: 0 and 1 at a, 2 at b, a no-op at 3, another of a's at 4."""
    made = Account(shard_of={1: "a", 2: "a", 3: "b", 4: "a"}, final={0: 1, 1: 2, 2: 3, 4: 4}, end=5)
    made.watchings.append(Watching("w", 0, ("a",), sights=list(sights)))
    return made


def rules(made: Account) -> set[str]:
    return {violation.rule for violation in judge(made)}


def placed(*positions: int, records: list[int], invoked: int = 0, returned: int = 1) -> Placing:
    return Placing(1, "a", invoked, records, returned, list(positions), Verdict.OK)


ALL = Shown(5, [0, 1, 4], [1, 2, 4], speculative=True)


def test_what_is_foretold_and_comes_true_is_right() -> None:
    assert judge(account(ALL, Settled(5))) == []


def test_what_is_failed_may_come_otherwise() -> None:
    wrong = Shown(5, [0, 1, 3, 4], [1, 2, 4, 9], speculative=True)
    assert judge(account(wrong, Settled(2), Voided(2), Shown(5, [4], [4], True), Settled(5))) == []


def test_what_comes_otherwise_without_a_failure_is_seen() -> None:
    wrong = Shown(5, [0, 1, 3], [1, 2, 4], speculative=True)
    assert rules(account(wrong, Settled(5))) == {"5 confirmed"}


def test_what_comes_again_without_a_failure_is_seen() -> None:
    assert rules(account(ALL, Shown(5, [4], [4], True))) == {"4 stream"}


def test_who_asks_again_may_hear_it_again() -> None:
    assert judge(account(ALL, Resumed(0), ALL, Settled(5))) == []


def test_a_failure_of_what_was_confirmed_is_seen() -> None:
    assert rules(account(ALL, Settled(5), Voided(2))) == {"4 stream"}


def test_to_resume_below_what_was_confirmed_repeats_it() -> None:
    assert judge(account(ALL, Resumable(0), Settled(2), Resumable(2), Resumable(4))) == []
    assert rules(account(ALL, Settled(2), Resumable(1))) == {"7 resumption"}


def test_to_resume_beyond_a_prediction_that_was_not_confirmed_loses_it() -> None:
    assert rules(account(ALL, Resumable(1), Settled(5))) == {"7 resumption"}


def test_who_asked_for_what_is_confirmed_is_shown_no_prediction() -> None:
    made = account(ALL, Settled(5))
    made.watchings[0].speculative = False
    assert rules(made) == {"8 confirmed alone"}


def test_a_failure_elsewhere_voids_nothing_here() -> None:
    assert judge(account(ALL, Voided(2, kept=True), Settled(5))) == []


def test_what_is_left_out_is_seen() -> None:
    assert rules(account(Shown(5, [0, 1], [1, 2], True), Settled(5))) == {"6 complete"}


def test_another_shards_records_are_left_out_rightly_and_others_are_not_its_own() -> None:
    made = account(Shown(5, [0, 1, 2, 4], [1, 2, 4, 4], True), Settled(5))
    assert rules(made) == {"5 confirmed"}


def test_an_acknowledgement_is_kept() -> None:
    made = account()
    made.placings.append(placed(0, 1, records=[1, 2]))
    assert judge(made) == []
    made.placings.append(placed(3, records=[4]))
    assert rules(made) == {"1 acknowledged"}


def test_a_record_twice_is_seen() -> None:
    made = account()
    made.final[3] = 4
    assert rules(made) == {"1 once"}


def test_a_record_that_nobody_sent_is_seen() -> None:
    made = account()
    made.final[3] = 77
    assert "1 nothing invented" in rules(made)


def test_a_later_append_comes_later_whatever_its_shard() -> None:
    made = account()
    made.placings.append(placed(2, records=[3], invoked=0, returned=1))
    early = Placing(2, "a", 2, [1], 3, [0], Verdict.OK)
    made.placings.append(early)
    assert rules(made) == {"2 linearizable"}
    early.invoked = 1
    assert judge(made) == []


def test_what_was_refused_is_nowhere() -> None:
    made = account()
    made.placings.append(Placing(1, "a", 0, [4], verdict=Verdict.REFUSED))
    assert rules(made) == {"1 refused"}


def test_one_clients_batches_stay_in_order() -> None:
    made = account()
    made.placings.append(placed(1, records=[2], invoked=1, returned=9))
    made.placings.append(placed(0, records=[1], invoked=2, returned=9))
    assert rules(made) == {"3 one client's order"}
