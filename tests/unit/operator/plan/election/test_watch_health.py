"""Who is blind finds out, and who only waits for the API server isn't taken for blind."""

from anabranch_operator.plan.election.watch_health import SECOND, Canary, Roll, Sighting
from anabranch_operator.plan.engine.objects import Ref

POD = Ref("Pod", "here", "one")
OTHER = Ref("Pod", "here", "two")


def test_a_watch_that_shows_what_was_learned_is_not_blind() -> None:
    canary = Canary(patience_s=60)
    for second in range(0, 600, 2):
        canary.learned(second + 1, second * SECOND)
        canary.shown(second + 1, second * SECOND)
        assert not canary.blind


def test_a_watch_that_falls_silent_is_blind_after_its_patience() -> None:
    canary = Canary(patience_s=60)
    canary.learned(1, 0)
    canary.shown(1, 0)
    for second in range(2, 62, 2):
        canary.learned(second, second * SECOND)
        assert not canary.blind
    canary.learned(62, 62 * SECOND)
    assert canary.blind


def test_a_watch_that_shows_something_late_has_its_patience_again() -> None:
    canary = Canary(patience_s=60)
    for second in range(0, 50, 2):
        canary.learned(second + 1, second * SECOND)
    canary.shown(9, 50 * SECOND)
    for second in range(50, 108, 2):
        canary.learned(second + 1, second * SECOND)
        assert not canary.blind


def test_while_the_api_server_is_away_nobody_is_blind_and_afterwards_there_is_time() -> None:
    canary = Canary(patience_s=60, gap_s=10)
    canary.learned(7, 0)
    assert not canary.blind
    canary.learned(9, 180 * SECOND)
    assert not canary.blind
    for second in range(182, 240, 2):
        canary.learned(second, second * SECOND)
        assert not canary.blind
    canary.learned(500, 240 * SECOND)
    assert canary.blind


def test_a_change_shown_before_its_own_answer_counts() -> None:
    canary = Canary()
    canary.shown(5, 0)
    canary.learned(5, SECOND)
    canary.learned(5, 100 * SECOND)
    assert not canary.blind


def test_a_kind_is_listed_once_its_watch_has_told_of_all_that_a_list_had() -> None:
    roll = Roll()
    roll.tell(POD, Sighting("p", 3))
    roll.compare({POD: Sighting("p", 3), OTHER: Sighting("o", 4)}, 9, 0)
    assert not roll.listed
    roll.tell(OTHER, Sighting("o", 4))
    roll.compare({POD: Sighting("p", 3), OTHER: Sighting("o", 4)}, 9, SECOND)
    assert roll.listed


def test_what_vanished_while_the_watch_was_cut_is_gone() -> None:
    roll = Roll()
    roll.tell(POD, Sighting("p", 3))
    roll.tell(OTHER, Sighting("o", 4))
    assert roll.compare({OTHER: Sighting("o", 4)}, 9, 0) == ((POD, "p"),)
    assert roll.compare({OTHER: Sighting("o", 4)}, 10, SECOND) == ()


def test_what_only_answers_to_writes_have_shown_is_gone_when_no_list_has_it() -> None:
    roll = Roll()
    roll.overhear(POD, Sighting("p", 5))
    roll.overhear(OTHER, Sighting("o", 6))
    assert roll.compare({}, 4, 0) == ()
    assert roll.compare({OTHER: Sighting("o", 6)}, 9, 0) == ((POD, "p"),)
    roll.forget(OTHER, "o")
    assert roll.compare({}, 12, 0) == ()


def test_what_came_after_the_list_was_made_is_not_gone() -> None:
    roll = Roll()
    roll.tell(POD, Sighting("p", 12))
    assert roll.compare({}, 11, 0) == ()


def test_another_of_the_same_name_means_that_the_first_is_gone() -> None:
    roll = Roll()
    roll.tell(POD, Sighting("p", 3))
    assert roll.compare({POD: Sighting("q", 8)}, 9, 0) == ((POD, "p"),)
    assert roll.owes
    roll.tell(POD, Sighting("q", 8))
    assert not roll.owes


def test_a_watch_that_never_shows_what_lists_have_is_blind() -> None:
    roll = Roll(patience_s=120)
    found = {POD: Sighting("p", 3)}
    roll.compare(found, 9, 0)
    assert not roll.blind(0)
    roll.compare({POD: Sighting("p", 5)}, 12, 119 * SECOND)
    assert not roll.blind(119 * SECOND)
    roll.compare({POD: Sighting("p", 6)}, 14, 120 * SECOND)
    assert roll.blind(120 * SECOND)


def test_what_is_gone_before_it_was_ever_shown_is_owed_no_more() -> None:
    roll = Roll()
    roll.compare({POD: Sighting("p", 3)}, 9, 0)
    roll.compare({}, 12, 300 * SECOND)
    assert not roll.owes
    assert not roll.blind(300 * SECOND)


def test_the_end_that_a_watch_shows_belongs_to_one_object_of_that_name() -> None:
    roll = Roll()
    roll.tell(POD, Sighting("q", 8))
    roll.forget(POD, "p")
    assert roll.compare({}, 9, 0) == ((POD, "q"),)
