"""Back-off of those who are refused again and again."""

from anabranch.core.rights.backoff import FIRST_NS, FREE, LONGEST_NS, Backoff


def test_a_few_refusals_are_free_and_then_each_costs_twice_as_much_up_to_a_bound() -> None:
    backoff, now, pauses = Backoff(8), 1_000, []
    for _ in range(FREE):
        backoff.refused("a", now)
        assert not backoff.until("a", now)
    for _ in range(100):
        backoff.refused("a", now)
        pauses.append(backoff.until("a", now) - now)
        now += pauses[-1]
        assert not backoff.until("a", now), "its time is over"
    assert pauses[:3] == [FIRST_NS, 2 * FIRST_NS, 4 * FIRST_NS]
    assert pauses == sorted(pauses)
    assert pauses[-1] == LONGEST_NS


def test_one_that_was_accepted_begins_anew_and_others_are_not_concerned() -> None:
    backoff = Backoff(8)
    for _ in range(FREE + 3):
        backoff.refused("a", 0)
    assert backoff.until("a", 0)
    assert not backoff.until("b", 0)
    backoff.accepted("a")
    assert not backoff.until("a", 0)


def test_it_remembers_so_many_and_the_latest() -> None:
    backoff = Backoff(3)
    for name in "abcde":
        for _ in range(FREE + 1):
            backoff.refused(name, 0)
    assert len(backoff) == 3
    assert [name for name in "abcde" if backoff.until(name, 0)] == ["c", "d", "e"]
