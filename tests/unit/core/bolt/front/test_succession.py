"""Which of a front's controllers leads (decision 67)."""

from typing import Any

from anabranch.core.alarms import Alarms
from anabranch.core.bolt.front.letters import FrontLeads
from anabranch.core.bolt.front.succession import TURN_MS, Succession
from anabranch.core.limits import Limits
from anabranch.core.types import MS

NAMES = ("a", "b", "c")
LIMITS = Limits()


class Candidate:
    """One controller; the log gives it a term whenever it asks."""

    def __init__(self, node: str, names: tuple[str, ...] = NAMES) -> None:
        self.alarms = Alarms([])
        self.sent: list[tuple[str, Any]] = []
        self.asked = 0
        self.its = Succession(
            node,
            names,
            LIMITS,
            self.alarms,
            lambda to, letter: self.sent.append((to, letter)),
            self._ask,
        )
        self.its.start()

    def _ask(self) -> None:
        self.asked += 1

    def wait(self, ms: int) -> None:
        for _ in range(ms):
            self.alarms.now += MS
            self.alarms.ring()


def test_the_only_controller_leads_at_once_and_again_when_it_is_deposed() -> None:
    alone = Candidate("a", ())
    assert alone.asked == 1
    alone.its.leads(1)
    alone.its.deposed()
    alone.wait(LIMITS.silent_ms)
    assert alone.asked == 2


def test_the_first_of_the_list_leads_unless_it_hears_of_another() -> None:
    first, late = Candidate("a"), Candidate("a")
    late.its.heard(FrontLeads(3))
    for each in (first, late):
        each.wait(2 * LIMITS.present_ms)
    assert (first.asked, late.asked) == (1, 0)


def test_others_wait_for_silence_each_in_its_turn() -> None:
    second, third = Candidate("b"), Candidate("c")
    for each in (second, third):
        each.its.heard(FrontLeads(1))
        each.wait(LIMITS.silent_ms + TURN_MS + LIMITS.present_ms // 2)
    assert (second.asked, third.asked) == (1, 0)
    third.wait(TURN_MS + LIMITS.present_ms)
    assert third.asked == 1


def test_a_leader_says_again_and_again_that_it_lives_and_at_last_that_it_leaves() -> None:
    first = Candidate("a")
    first.its.leads(4)
    first.wait(LIMITS.present_ms)
    assert {to for to, _ in first.sent} == {"b", "c"}
    assert {letter for _, letter in first.sent} == {FrontLeads(4)}
    first.its.leave()
    assert first.sent[-1][1] == FrontLeads(4, leaving=True)
    second = Candidate("b")
    second.its.heard(FrontLeads(4, leaving=True))
    second.wait(TURN_MS + LIMITS.present_ms)
    assert second.asked == 1, "it doesn't wait for silence"


def test_a_later_term_deposes_and_an_earlier_one_counts_for_nothing() -> None:
    first = Candidate("a")
    first.its.leads(2)
    assert not first.its.heard(FrontLeads(1))
    assert first.its.heard(FrontLeads(3))
    first.sent.clear()
    first.wait(LIMITS.present_ms)
    assert first.sent == []


def test_time_in_which_it_did_not_run_is_nobodys_silence() -> None:
    second = Candidate("b")
    second.its.heard(FrontLeads(1))
    missed = 10 * LIMITS.silent_ms * MS
    second.alarms.now += missed
    second.its.was_away(missed)
    second.alarms.ring()
    assert second.asked == 0
