"""Controllers that elect a leader, and what becomes of decisions of those that lead no more."""

from tests.unit.core.erwin.controller.stage import LIMITS, TICK_MS, Stage

from anabranch.core.erwin.controller.controller import SNAPSHOT_ENTRIES, Controller
from anabranch.core.machine import (
    Deposed,
    Drain,
    Elected,
    Follow,
    Followed,
    Persist,
    Persisted,
    Resign,
    Rest,
    Restored,
)


def group() -> Stage:
    stage = Stage(controllers=("k", "l"), alone=False)
    stage.run(1_000)
    assert stage.taking() == set(stage.sequencer_names)
    assert leaders(stage) == ["k"]
    return stage


def leaders(stage: Stage) -> list[str]:
    return [node for node, host in stage.hosts.items() if host.up and host.controller.leads]


def test_a_follower_knows_what_the_leader_journaled_and_goes_on_when_it_is_elected() -> None:
    stage = group()
    follower = stage.hosts["l"].controller
    assert follower.configuration == stage.configuration
    assert follower.obstacle is None
    stage.hosts["k"].crash(kept=True)
    stage.sequencers["s1"].crash()
    stage.run(2_000)
    assert leaders(stage) == ["l"]
    assert follower.configuration.view is not None
    assert follower.configuration.view.nodes == ("s2", "s3")
    assert follower.configuration.term == 2


def test_a_successor_knows_at_once_who_died_with_the_leader_before_it() -> None:
    stage = group()
    stage.hosts["k"].crash(kept=True)
    stage.sequencers["s1"].crash()
    stage.group.leader = "k"  # its lease goes on
    stage.run(2_000)
    assert leaders(stage) == []
    stage.group.leader = ""
    stage.run(2 * TICK_MS)
    assert leaders(stage) == ["l"]
    view = stage.hosts["l"].controller.configuration.view
    taking = [each.node for each in stage.sequencers.values() if each.takes and each.view == view]
    assert taking == ["s2", "s3"]


def test_a_leader_that_is_deposed_in_the_middle_of_a_view_change_is_replaced() -> None:
    for told in (True, False):
        stage = group()
        stage.sequencers["s3"].crash()
        host = stage.hosts["k"]
        stage.lossy = True
        for _ in range(100):
            stage.tick()
            while stage.letters and host.group is None:
                stage.deliver()
            if host.group is not None:
                break
        assert host.group is not None, "the next view is on its way to the journal"
        stage.depose(told=told)
        stage.lossy = False
        stage.run(2_000)
        assert leaders(stage) == ["l"]
        view = stage.hosts["l"].controller.configuration.view
        assert view is not None
        assert (view.number, view.nodes) == (2, ("s1", "s2"))
        assert view.ballot.term == 2
        assert (
            stage.hosts["k"].controller.configuration == stage.hosts["l"].controller.configuration
        )


def test_a_deposed_leader_that_is_elected_again_has_a_term_of_its_own() -> None:
    stage = group()
    stage.depose(told=True)
    stage.run(1_000)
    stage.depose(told=True)
    stage.run(1_000)
    assert leaders(stage) == ["k"]
    assert stage.configuration.term == 3
    assert stage.view.number == 1


def test_an_election_waits_for_the_fate_of_what_is_on_its_way() -> None:
    stage = Stage(controllers=("k",), alone=False)
    controller = Controller(stage.host.config, LIMITS)
    assert isinstance(controller.start(0)[0], Follow)
    [*_, persist] = controller.step(0, Elected(1, 9))
    assert isinstance(persist, Persist)
    assert controller.step(1, Deposed()) == (Follow(0),)
    assert controller.step(2, Elected(3, 9)) == ()
    controller.step(2, Followed(1, persist.entries))
    [*_, again] = controller.step(3, Persisted(1))
    assert isinstance(again, Persist)
    assert controller.configuration.version == 1
    assert controller.leads


def test_a_leader_that_ends_lets_another_lead_when_its_last_decision_is_journaled() -> None:
    stage = group()
    host = stage.hosts["k"]
    host.step(Drain())
    assert host.rested
    stage.run(1_000)
    assert leaders(stage) == ["l"]


def test_what_is_on_its_way_is_awaited_at_the_end() -> None:
    stage = Stage()
    assert stage.host.group is not None
    stage.host.step(Drain())
    assert not stage.host.rested
    stage.settle()
    assert stage.host.rested
    assert stage.configuration.version == 1


def test_a_member_that_cant_read_the_journal_neither_follows_nor_leads() -> None:
    stage = Stage(controllers=("k",), alone=False)
    controller = Controller(stage.host.config, LIMITS)
    controller.start(0)
    assert controller.step(0, Followed(1, [b"what is this"])) == (Resign(),)
    assert controller.obstacle is not None
    assert "entry 1" in controller.obstacle
    assert controller.step(0, Elected(1, 9)) == (Resign(),)
    assert controller.step(0, Followed(2, [b"and this"])) == ()


def test_a_controller_does_not_lead_another_log_of_the_same_name() -> None:
    entry = group().group.entries[-1]
    other = Stage(controllers=("k",), alone=False, sequencers=("t1", "t2", "t3"))
    controller = Controller(other.host.config, LIMITS)
    controller.start(0)
    controller.step(0, Followed(1, [entry]))
    assert controller.step(0, Elected(1, 9)) == (Resign(),)
    assert controller.obstacle is not None
    assert "s1, s2, s3, of which none is among its members" in controller.obstacle
    overlapping = Stage(controllers=("k",), alone=False, sequencers=("s1", "t2", "t3"))
    controller = Controller(overlapping.host.config, LIMITS)
    controller.start(0)
    controller.step(0, Followed(1, [entry]))
    controller.step(0, Elected(2, 9))
    assert controller.leads


def test_a_snapshot_stands_for_what_the_journal_has_forgotten() -> None:
    stage = group()
    entry = stage.group.entries[-1]
    controller = Controller(stage.hosts["l"].config, LIMITS)
    controller.start(0)
    controller.step(0, Restored(7, entry))
    assert (controller.index, controller.configuration) == (7, stage.configuration)
    assert controller.step(0, Followed(9, [entry])) == (Follow(7),), "8 is missing"
    controller.step(0, Followed(6, [b"", b"", entry]))
    assert controller.index == 8


def test_a_controller_with_a_journal_of_its_own_saves_snapshots_of_it() -> None:
    stage = Stage()
    stage.run(1_000)
    for turn in range(SNAPSHOT_ENTRIES):
        stage.ask("h1", to_open=turn % 2 == 1)
        stage.run(50)
    [saved] = stage.host.saved
    assert saved.index == SNAPSHOT_ENTRIES
    again = Controller(stage.host.config, LIMITS)
    again.recover(saved.image)
    assert again.configuration == stage.host.journal.configurations[saved.index - 1]


def test_alone_a_controller_rests_without_a_word_to_a_group() -> None:
    stage = Stage()
    stage.run(500)
    assert stage.controller.step(stage.now, Drain()) == (Rest(),)
