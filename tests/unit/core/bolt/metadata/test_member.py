"""A member of a metadata group as traces: it follows, leads, answers under its lease, and ends."""

import msgspec
import pytest
from tests.unit.core.bolt.metadata.member_stage import FENCED, LEASE, Stage, entry

from anabranch.core.bolt.metadata.leader import SILENCE, blank
from anabranch.core.bolt.protocol.commands import (
    FORMAT,
    CreateLog,
    Description,
    Done,
    DrainBroker,
    ForgetBroker,
    RaiseFormat,
    RegisterBroker,
)
from anabranch.core.bolt.protocol.letters import Alive, Applied, Leading, QueryAnswer
from anabranch.core.bolt.state import snapshot
from anabranch.core.errors import StorageFailed
from anabranch.core.limits import Limits
from anabranch.core.machine import (
    Campaign,
    Deposed,
    Drain,
    Follow,
    Followed,
    LeaseHeld,
    Persisted,
    PersistFailed,
    Received,
    Resign,
    Rest,
    Restored,
    SaveSnapshot,
    SnapshotSaved,
    TimerFired,
)
from anabranch.core.types import MS


@pytest.fixture
def stage() -> Stage:
    return Stage()


def followed(stage: Stage, *names: str) -> None:
    stage.give(Followed(stage.member.index + 1, [entry(CreateLog(name)) for name in names]))


def test_a_standby_applies_what_is_journaled_once_and_says_nothing(stage: Stage) -> None:
    assert stage.took() == [Follow(0), Campaign()]
    entries = [entry(CreateLog("a")), entry(CreateLog("b"), CreateLog("c"))]
    stage.give(Followed(1, entries), Followed(1, entries), Followed(2, entries[1:]))
    assert stage.member.index == 2
    assert [*stage.member.state.replica.forest.names] == ["a", "b", "c"]
    stage.ask("a")
    stage.propose(CreateLog("d"))
    stage.give(Received("b", Alive(1)), TimerFired(SILENCE), SnapshotSaved(1))
    assert not stage.said
    assert not stage.took()


def test_a_leader_says_which_life_of_a_broker_is_the_last(stage: Stage) -> None:
    stage.lead()
    stage.propose(RegisterBroker("b", "host:1"), b"a life")
    stage.write()
    (epoch,) = [each.outcome.epoch for each in stage.heard(Applied)]
    stage.give(Received("b", Alive(epoch - 1)), Received("c", Alive(0)))
    assert stage.heard(Leading) == [Leading(1, epoch), Leading(1, 0)]


def test_a_broker_that_was_forgotten_is_told_that_it_is_over(stage: Stage) -> None:
    stage.lead()
    for life in (b"one", b"two"):
        stage.propose(RegisterBroker(life.decode(), "host:1"), life)
    stage.write()
    one, two = [each.outcome.epoch for each in stage.heard(Applied)]
    for name, epoch in (("one", one), ("two", two)):
        stage.propose(DrainBroker(name, epoch), name.encode() + b"'s drain")
        stage.propose(ForgetBroker(name, epoch), name.encode() + b"'s end")
    stage.write()
    assert [each.outcome for each in stage.heard(Applied)] == [Done()] * 4
    stage.give(Received("one", Alive(one)), Received("two", Alive(two)), Received("one", Alive(0)))
    assert [each.epoch for each in stage.heard(Leading)] == [two + 1, two + 1, 0]


def test_a_leader_that_is_behind_tells_no_broker_that_it_is_over(stage: Stage) -> None:
    """It was deposed and doesn't know, and the life was registered with the next leader."""
    stage.lead()
    stage.propose(RegisterBroker("one", "host:1"), b"a life")
    stage.write()
    (epoch,) = [each.outcome.epoch for each in stage.heard(Applied)]
    for later in (epoch + 1, epoch + 2):
        stage.give(Received("two", Alive(later)))
        assert all(each.epoch <= later for each in stage.heard(Leading))


def test_the_elected_leads_from_where_it_has_followed_to(stage: Stage) -> None:
    followed(stage, "a", "b")
    stage.give(Received("b", Alive(0)))
    stage.elect(term=7)
    assert stage.heard(Leading) == [Leading(7)]
    stage.give(Received("c", Alive(0)))
    assert stage.said == [("c", Leading(7))]
    stage.propose(CreateLog("orders"))
    assert len(stage.groups) == 1
    stage.give(Persisted(3))
    stage.write()
    assert [type(each.outcome) for each in stage.heard(Applied)] == [Description]
    assert stage.member.state.replica.format == FORMAT


def test_what_a_leader_journaled_is_what_a_standby_has(stage: Stage) -> None:
    other = Stage()
    stage.elect()
    for name in ("a", "b", "c"):
        stage.propose(CreateLog(name))
    while stage.groups:
        group = stage.groups.pop(0)
        stage.give(Persisted(stage.member.index + 1))
        other.give(Followed(other.member.index + 1, list(group.entries)))
    assert other.image == stage.image
    assert other.member.index == stage.member.index


def test_spec_4_r2_questions_past_the_lease_wait_until_it_is_held_again(stage: Stage) -> None:
    stage.lead()
    stage.ask()
    assert len(stage.heard(QueryAnswer)) == 1
    stage.wait(LEASE // MS)
    stage.ask()
    stage.ask()
    assert not stage.heard(QueryAnswer)
    stage.give(LeaseHeld(stage.now))
    assert not stage.heard(QueryAnswer), "it is over at that instant"
    stage.give(LeaseHeld(stage.now + 1))
    assert [told.token for told in stage.heard(QueryAnswer)] == [2, 3]
    stage.give(LeaseHeld(stage.now + LEASE))
    assert not stage.heard(QueryAnswer), "each is answered once"


def test_questions_that_wait_for_a_lease_are_dropped_with_the_lead(stage: Stage) -> None:
    stage.lead()
    stage.wait(LEASE // MS)
    stage.ask()
    stage.give(Deposed(), LeaseHeld(stage.now + LEASE))
    stage.lead(term=2)
    assert not stage.heard(QueryAnswer)


def test_the_lease_of_an_earlier_lead_says_nothing_of_this_one(stage: Stage) -> None:
    stage.lead()
    stage.give(LeaseHeld(stage.now + 10 * LEASE), Deposed())
    stage.elect(term=2, lease=1)
    stage.wait(1)
    stage.ask()
    assert not stage.heard(QueryAnswer)


def test_a_deposed_leader_answers_nobody_and_follows_on(stage: Stage) -> None:
    stage.lead()
    index = stage.member.index
    stage.propose(CreateLog("orders"))
    stage.took()
    stage.give(Deposed())
    assert stage.took() == [Follow(index)]
    stage.give(Persisted(index + 1))
    assert not stage.heard(Applied)
    assert stage.member.index == index, "it comes by `Followed`, if it is in the journal"
    followed(stage, "orders")
    assert stage.member.index == index + 1


def test_a_fenced_group_is_answered_by_nobody_and_the_member_stands_again(stage: Stage) -> None:
    stage.lead()
    stage.took()
    stage.propose(CreateLog("orders"))
    stage.give(FENCED)
    assert not stage.heard(Applied)
    assert stage.took() == [Follow(stage.member.index), Resign(), Campaign()]
    stage.give(Deposed())
    assert not stage.took()
    assert stage.member.leader is None


def test_a_group_that_failed_otherwise_is_refused_and_the_lead_goes_on(stage: Stage) -> None:
    stage.lead()
    stage.propose(CreateLog("orders"))
    stage.give(PersistFailed(StorageFailed("etcd", "an outage")))
    assert [each.outcome.code for each in stage.heard(Applied)] == ["storage-failed"]
    assert stage.member.leader is not None


@pytest.mark.parametrize("journaled", [True, False])
def test_elected_again_it_leads_once_the_group_of_its_earlier_lead_is_decided(
    stage: Stage, journaled: bool
) -> None:
    stage.lead()
    index = stage.member.index
    stage.propose(CreateLog("orders"), b"request 1")
    stage.give(Deposed())
    if journaled:
        stage.give(Followed(index + 1, stage.groups[0].entries))
    stage.groups.clear()
    stage.elect(term=2)
    stage.propose(CreateLog("other"))
    assert stage.member.leader is None
    assert not stage.groups
    stage.give(Persisted(index + 1) if journaled else FENCED)
    assert stage.member.leader is not None
    assert not stage.heard(Applied), "whom the earlier lead would have answered asks this one"
    stage.propose(CreateLog("orders"), b"request 1")
    stage.write()
    assert [type(each.outcome) for each in stage.heard(Applied)] == [Description]
    assert stage.member.index == index + 1 + journaled
    assert len(stage.member.state.replica.forest.logs) == 1


def test_deposed_while_it_waits_for_that_group_it_doesnt_lead(stage: Stage) -> None:
    stage.lead()
    stage.propose(CreateLog("orders"))
    stage.give(Deposed())
    stage.elect(term=2)
    stage.give(Deposed(), FENCED)
    assert stage.member.leader is None


def test_entries_that_come_of_an_earlier_following_are_asked_for_again(stage: Stage) -> None:
    """Its own came while it led, and the next leader's behind them before it had asked anew."""
    stage.lead()
    index = stage.member.index
    stage.propose(CreateLog("orders"))
    own = stage.groups.pop(0).entries
    stage.give(Followed(index + 1, own), Deposed())
    stage.took()
    late = entry(CreateLog("late"))
    stage.give(Followed(index + 2, [late]))
    assert stage.took() == [Follow(index)]
    assert stage.member.index == index
    stage.give(Followed(index + 1, [*own, late]))
    assert stage.member.index == index + 2


def test_drained_it_finishes_the_group_in_flight_and_hands_over(stage: Stage) -> None:
    stage.lead()
    stage.took()
    stage.propose(CreateLog("orders"))
    stage.give(Drain(), Drain())
    stage.propose(CreateLog("too late"))
    assert not stage.took()
    stage.give(Persisted(stage.member.index + 1))
    assert [type(each.outcome) for each in stage.heard(Applied)] == [Description]
    assert stage.took() == [Resign(), Rest()]
    stage.ask()
    assert not stage.heard(QueryAnswer)


def test_drained_with_nothing_in_hand_it_hands_over_at_once(stage: Stage) -> None:
    stage.lead()
    stage.took()
    stage.give(Drain())
    assert stage.took() == [Resign(), Rest()]
    stage.elect(term=2)
    assert stage.took() == [Resign()]
    assert stage.member.leader is None


def test_a_standby_that_is_drained_rests_at_once(stage: Stage) -> None:
    stage.took()
    stage.give(Drain(), Drain())
    assert stage.took() == [Resign(), Rest()]


@pytest.mark.parametrize("deposed", [True, False])
def test_fenced_while_it_drains_it_rests_and_stands_no_more(stage: Stage, deposed: bool) -> None:
    stage.lead()
    stage.took()
    stage.propose(CreateLog("orders"))
    stage.give(Drain())
    if deposed:
        stage.give(Deposed())
    stage.give(FENCED)
    taken = stage.took()
    assert Campaign() not in taken
    assert taken.count(Rest()) == 1
    assert taken[-1] == Rest()


def test_a_member_of_an_earlier_format_follows_no_further_and_never_leads() -> None:
    older, newer = Stage(knows=FORMAT), Stage(knows=FORMAT + 1)
    newer.elect()
    group = newer.groups.pop(0)
    newer.give(Persisted(1))
    assert newer.member.state.replica.format == FORMAT + 1
    older.took()
    older.give(Followed(1, [*group.entries, entry(CreateLog("in the new way"))]))
    assert older.took() == [Resign()]
    assert older.member.index == 1
    assert "upgrade" in older.member.unfit
    older.elect()
    assert older.took() == [Resign()]
    assert older.member.leader is None
    older.give(Followed(2, [entry(CreateLog("more"))]), Restored(9, newer.image))
    assert older.member.index == 1


def test_a_member_of_a_later_format_raises_it_once() -> None:
    newer = Stage(knows=FORMAT + 1)
    newer.give(Followed(1, [entry(RaiseFormat(FORMAT))]))
    newer.lead()
    assert newer.member.state.replica.format == FORMAT + 1
    index = newer.member.index
    newer.give(Deposed())
    newer.lead(term=2)
    assert newer.member.index == index


@pytest.mark.parametrize(
    "unknown", [msgspec.msgpack.encode([[1, b"", ["no such command", 1]]]), b"\x91\x01"]
)
def test_a_member_that_cant_decode_an_entry_follows_no_further(
    stage: Stage, unknown: bytes
) -> None:
    stage.took()
    stage.give(Followed(1, [entry(CreateLog("a")), unknown, entry(CreateLog("b"))]))
    assert stage.took() == [Resign()]
    assert stage.member.index == 1
    assert "entry 2" in stage.member.unfit


def test_a_state_restored_goes_on_from_there_and_an_old_one_changes_nothing(stage: Stage) -> None:
    other = Stage()
    followed(other, "a", "b", "c")
    stage.give(Restored(3, other.image))
    assert (stage.member.index, stage.image) == (3, other.image)
    followed(stage, "d")
    followed(other, "d")
    before = stage.image
    assert before == other.image
    stage.give(Restored(3, b"an old image"))
    assert (stage.member.index, stage.image) == (4, before)


def test_a_snapshot_of_a_later_version_makes_a_member_unfit(stage: Stage) -> None:
    stage.took()
    stage.give(Restored(3, msgspec.msgpack.encode([snapshot.VERSION + 1, "in another way"])))
    assert stage.took() == [Resign()]
    assert stage.member.unfit
    stage.elect()
    assert stage.member.leader is None


def test_a_snapshot_is_taken_though_no_lead_lasts_as_long() -> None:
    """The journal would grow for ever if every leader counted from its own beginning."""
    stage = Stage(snapshot_bytes=4_000)
    for term in range(1, 5):
        stage.lead(term)
        for number in range(10):
            stage.propose(CreateLog(f"log-{term}-{number}", "somebody", "x" * 100))
            stage.write()
        stage.give(Deposed())
    saved = [each for each in stage.took() if isinstance(each, SaveSnapshot)]
    assert len(saved) == 1
    follower = Stage(snapshot_bytes=4_000)
    follower.give(Followed(1, [entry(CreateLog(f"log-{n}", "", "x" * 390)) for n in range(8)]))
    follower.lead()
    for number in range(3):
        follower.propose(CreateLog(f"own-{number}", "", "x" * 390))
        follower.write()
    assert any(isinstance(each, SaveSnapshot) for each in follower.took())


def test_blank_members_agree_before_the_first_entry() -> None:
    few = Stage(logs_max=3)
    assert few.image == snapshot.save(blank("test", Limits()).replica)
