"""The sequencing group's consensus: what it commits is had by all, alike, and for ever."""

import pytest
from tests.unit.core.consensus.conformance import conform
from tests.unit.core.consensus.council import Conditions, Council, Entries

from anabranch.core.consensus.consensus import ConsensusLetter
from anabranch.core.consensus.letters import Accepted, AskVote, Install, Offer
from anabranch.core.types import MS


def test_a_group_of_one_leads_at_once_and_writes_no_letter() -> None:
    council = Council(members=1).start()
    council.run(5)
    assert council.leader is not None
    entry = council.propose()
    council.run(5)
    assert council.committed == [council.no_op, entry]
    assert council.letters == []


def test_a_group_begins_when_all_its_members_are_there() -> None:
    council = Council()
    council.members["a"].start()
    council.members["b"].start()
    council.run(10_000)
    assert council.leader is None
    council.members["c"].start()
    council.elect()
    council.run(1_000)
    assert [member.applied for member in council.members.values()] == [[council.no_op]] * 3


def test_a_commit_takes_one_round_trip_and_one_sync() -> None:
    council = Council().start()
    council.elect()
    council.run(1_000)
    council.conditions = Conditions(letter_ms=(3, 3), disk_ms=(4, 4))
    begun = council.now
    before = len(council.committed)
    council.propose()
    council.run(100, lambda: len(council.committed) > before)
    assert council.now - begun == (3 + 4 + 3) * MS


def test_offers_follow_one_another_before_the_first_is_answered() -> None:
    council = Council().start()
    leader = council.elect()
    council.run(1_000)
    council.conditions = Conditions(letter_ms=(40, 40))
    for _ in range(5):
        council.propose()
        council.run(1)
    sent = [each for _, to, each in council.letters if isinstance(each, Offer) and each.entries]
    assert [len(each.entries) for each in sent[-10:]] == [1] * 10
    before = len(council.committed)
    council.run(90)
    assert len(council.committed) == before + 5
    assert leader.leads


def test_what_a_step_proposes_goes_in_one_group_and_one_letter() -> None:
    council = Council().start()
    leader = council.elect()
    council.run(1_000)
    council.letters.clear()
    leader.step(lambda: [leader.consensus.propose(b"%d" % nth) for nth in range(100)])
    offers = [each for _, _, each in council.letters if isinstance(each, Offer)]
    assert [len(each.entries) for each in offers] == [100, 100]


def test_letters_and_what_is_under_way_are_bounded() -> None:
    council = Council().start()
    leader = council.elect()
    council.run(1_000)
    council.letters.clear()
    large = bytes(300 << 10)
    council.conditions.loss = 1.0
    for _ in range(100):
        leader.propose(large)
    for other in {"a", "b", "c"} - {leader.name}:
        sent = [each for _, to, each in council.letters if to == other and isinstance(each, Offer)]
        assert max(sum(len(entry.content) for entry in each.entries) for each in sent) <= 1 << 20
        assert sum(len(each.entries) for each in sent) * len(large) <= 9 << 20
    council.converge()
    assert sum(entry == large for entry in council.committed) == 100


def test_a_dead_leader_is_replaced_within_a_second_and_a_half() -> None:
    council = Council().start()
    leader = council.elect()
    entries = [council.propose() for _ in range(10)]
    council.run(100)
    leader.crash()
    council.run(1_500)
    assert council.leader not in {None, leader}
    council.converge()
    assert council.committed[1:11] == entries


def test_who_was_cut_off_disturbs_nobody_when_it_is_back() -> None:
    council = Council().start()
    leader = council.elect()
    other = next(name for name in council.names if name != leader.name)
    council.cut_off(other)
    council.run(30_000)
    term = leader.consensus.term
    council.heal()
    council.run(3_000)
    assert leader.leads
    assert leader.consensus.term == term


def test_who_cannot_hear_the_leader_finds_no_votes_against_it() -> None:
    council = Council().start()
    leader = council.elect()
    council.run(1_000)
    other = next(name for name in council.names if name != leader.name)
    council.conditions.cut.add((leader.name, other))
    council.run(10_000)
    assert leader.leads
    assert leader.consensus.term == 1


def test_a_leader_that_hears_no_majority_steps_down() -> None:
    council = Council().start()
    leader = council.elect()
    council.run(1_000)
    council.cut_off(leader.name)
    lost = council.propose()
    council.run(600)
    assert not leader.leads
    assert leader.consensus.leader is None
    assert leader.consensus.reachable == (leader.name,)
    council.run(2_000)
    kept = council.propose()
    council.converge()
    assert lost not in council.committed
    assert kept in council.committed


def test_an_entry_of_an_earlier_term_is_committed_with_one_of_the_own() -> None:
    """Raft, 5.4.2: counting replicas of an old entry says nothing."""
    council = Council().start()
    leader = council.elect()
    council.run(1_000)
    heir = next(name for name in council.names if name != leader.name)
    council.conditions.cut |= {(name, leader.name) for name in council.names}
    council.conditions.cut.add((leader.name, next(iter(set(council.names) - {leader.name, heir}))))
    entry = council.propose()
    council.run(30)
    leader.crash()
    council.conditions = Conditions()
    elected = council.elect()
    assert elected.name == heir
    assert elected.applied[-2:] == [entry, council.no_op]
    assert elected.consensus.term > 1


def test_a_leader_that_resigns_hands_over_to_who_has_most() -> None:
    council = Council().start()
    leader = council.elect()
    council.run(1_000)
    behind = next(name for name in council.names if name != leader.name)
    council.conditions.cut.add((leader.name, behind))
    council.propose()
    council.run(30)
    begun = council.now
    leader.resign()
    council.run(1_000, lambda: council.leader not in {None, leader})
    assert council.leader is not None
    assert council.leader.name not in {leader.name, behind}
    assert council.now - begun < 100 * MS
    council.converge()


def test_a_leader_that_resigns_asks_another_where_the_first_abstains() -> None:
    council = Council().start()
    for _ in range(2):
        leader = council.elect()
        council.run(1_000)
        leader.resign()
        council.run(150, lambda left=leader: council.leader not in {None, left})
        assert council.leader not in {None, leader}, "sooner than by an election"


def test_a_leader_that_resigns_under_load_loses_nothing() -> None:
    council = Council(seed=3).start()
    council.elect()
    council.conditions = Conditions(letter_ms=(1, 9), disk_ms=(1, 9))
    resigned: set[str] = set()
    for nth in range(600):
        council.propose()
        council.run(2)
        leader = council.leader
        if nth in {200, 400} and leader is not None:
            leader.resign()
            resigned.add(leader.name)
    assert council.leader is not None
    assert council.leader.name not in resigned
    assert len(council.leaders) == 3
    council.converge()


def test_who_needs_what_is_forgotten_gets_the_image() -> None:
    council = Council(kept_entries=20, snapshot_entries=10).start()
    leader = council.elect()
    other = council.members[next(name for name in council.names if name != leader.name)]
    other.crash()
    for _ in range(100):
        council.propose()
        council.run(5)
    assert leader.consensus.entries(0, 10) is None
    first, entries = leader.consensus.entries(leader.consensus.committed - 5, 3) or (0, [])
    assert entries == council.committed[first - 1 : first + 2]
    council.letters.clear()
    other.start()
    assert other.restored == 0 or len(other.applied) < 50
    council.run(3_000)
    assert other.applied == council.committed
    assert sum(isinstance(each, Install) for _, _, each in council.letters) == 1


def test_a_journal_and_its_snapshots_rebuild_all() -> None:
    council = Council(members=1, snapshot_entries=10).start()
    for life in range(10):
        council.elect()
        for _ in range(7 + life):
            council.propose()
            council.run(5)
        member = council.members["a"]
        before, term = list(member.applied), member.consensus.term
        assert len(member.paper.entries) < 25
        member.crash()
        member.start()
        council.elect()
        assert member.applied == [*before, council.no_op]
        assert member.consensus.term == term + 1


def test_nothing_is_promised_before_it_is_durable() -> None:
    council = Council().start()
    council.conditions.disk_ms = (1e9, 1e9)
    council.run(10_000)
    assert all(isinstance(each, AskVote) and each.probing for _, _, each in _asks(council))
    council = Council().start()
    council.elect()
    council.run(1_000)
    council.letters.clear()
    council.conditions.disk_ms = (1e9, 1e9)
    last = len(council.committed)
    council.propose()
    council.run(1_000)
    told = [each for _, _, each in council.letters if isinstance(each, Accepted)]
    assert {each.durable for each in told} == {last}
    assert len(council.committed) == last


def _asks(council: Council) -> list[tuple[str, str, ConsensusLetter]]:
    return [each for each in council.letters if isinstance(each[2], AskVote)]


def test_a_leader_whose_disk_refuses_lets_another_lead() -> None:
    council = Council().start()
    leader = council.elect()
    council.run(1_000)
    council.conditions.disk_failures = 1.0
    council.propose()
    council.run(10)
    assert not leader.leads
    council.conditions.disk_failures = 0.0
    council.elect()
    council.converge()


@pytest.mark.parametrize("lost", ["a", "b", "c"])
def test_a_member_that_lost_its_disk_has_no_say_until_it_holds_all(lost: str) -> None:
    """Two disks hold an entry, one of those is lost, and the third member must not forget it."""
    council = Council().start()
    leader = council.elect()
    council.run(1_000)
    others = [name for name in council.names if name != leader.name]
    behind = others[0] if lost != others[0] else others[1]
    council.cut_off(behind)
    entry = council.propose()
    council.run(100)
    assert entry in council.committed
    member = council.members[lost]
    member.crash()
    member.paper = type(member.paper)()
    member.start()
    holder = next(name for name in council.names if name not in {lost, behind})
    council.conditions = Conditions()
    council.cut_off(holder)
    council.run(20_000)
    assert council.leader is None or council.leader.name == holder
    council.converge()
    council.members[holder].crash()
    assert council.elect().applied[: len(council.committed)] == council.committed


def test_a_link_that_is_back_is_used_at_once() -> None:
    council = Council().start()
    leader = council.elect()
    council.run(1_000)
    other = next(name for name in council.names if name != leader.name)
    council.cut_off(other)
    council.propose()
    council.run(20)
    council.conditions = Conditions()
    leader.step(lambda: leader.consensus.linked(other))
    council.run(5)
    assert council.members[other].consensus.last == leader.consensus.last


@pytest.mark.parametrize("seed", range(24))
def test_a_list_of_entries_conforms(seed: int) -> None:
    conform(seed, Entries)
