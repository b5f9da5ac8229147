"""The rules of a consensus group, each broken by one word."""

from anabranch.core.consensus.invariants import GroupInvariants
from anabranch.core.consensus.letters import Offer, Vote


def test_members_that_commit_one_log_break_no_rule() -> None:
    rules = GroupInvariants()
    for node in ("a", "b"):
        rules.on_commit(node, 1, b"one")
        rules.on_commit(node, 2, b"two")
    rules.on_lead("a", 1)
    rules.on_letter("a", Vote(1, True, False, False))
    assert rules.committed == [b"one", b"two"]
    assert rules.violations == []


def test_another_entry_or_one_behind_a_gap_is_a_violation() -> None:
    rules = GroupInvariants()
    rules.on_commit("a", 1, b"one")
    rules.on_commit("b", 1, b"another")
    rules.on_commit("b", 3, b"three")
    assert rules.violations == [
        "one log: b commits another entry 1",
        "one log: b commits entry 3, the last was 1",
    ]


def test_two_leaders_of_one_term_are_a_violation() -> None:
    rules = GroupInvariants()
    rules.on_lead("a", 1)
    rules.on_lead("b", 2)
    rules.on_letter("b", Offer(1, 0, 0, [], 0, True))
    assert rules.violations == ["one leader: b and a lead term 1"]
