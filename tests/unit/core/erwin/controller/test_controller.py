"""A controller among naive nodes, example by example."""

from msgspec.structs import replace
from tests.unit.core.erwin.controller.stage import LIMITS, Stage, running

from anabranch.core.erwin.protocol.letters import OpenShard, ShardSealed
from anabranch.core.machine import Received
from anabranch.core.sequencing.protocol.letters import Prepared, Sealed
from anabranch.core.sequencing.view import Ballot

RETURN_MS = LIMITS.return_ms + 1_000
SILENT_MS = 1_000


def test_the_first_view_starts_when_all_nodes_are_there() -> None:
    stage = Stage()
    stage.replicas["h1-b"].crash()
    stage.run(1_000)
    assert stage.configuration.view is None
    assert stage.setup("h0").replicas == ("h0-a", "h0-b")
    assert "h1" in (stage.controller.obstacle or "")
    stage.replicas["h1-b"].restart()
    stage.run(300)
    assert stage.taking() == {"s1", "s2", "s3"}
    assert stage.view.leader == "s1"
    assert [setup.epoch for setup in stage.configuration.shards] == [1, 1]
    assert stage.controller.obstacle is None
    known = {each.version for each in (*stage.sequencers.values(), *stage.replicas.values())}
    assert known == {stage.configuration.version}


def test_a_majority_starts_the_first_view_if_the_others_dont_come() -> None:
    stage = Stage()
    stage.sequencers["s2"].crash()
    stage.run(RETURN_MS)
    assert stage.view.nodes == ("s1", "s3")


def test_a_silent_member_is_done_without_and_comes_back_in_a_later_view() -> None:
    stage = running()
    assert stage.append(1)
    stage.sequencers["s1"].crash()
    stage.run(SILENT_MS)
    assert stage.view.nodes == ("s2", "s3")
    assert stage.taking() == {"s2", "s3"}
    assert stage.append(2)
    stage.sequencers["s1"].restart()
    stage.run(1_000)
    assert stage.view.number == 2, "not too often"
    stage.run(RETURN_MS)
    assert stage.view.number == 3
    assert stage.taking() == {"s1", "s2", "s3"}
    assert {1, 2} <= set(stage.sequencers["s1"].held.all)
    stage.run(2 * RETURN_MS)
    assert stage.view.number == 3, "nothing is wrong any more"


def test_an_acknowledged_append_survives_all_members_but_one() -> None:
    stage = running()
    assert stage.append(7)
    for node in ("s1", "s2"):
        stage.sequencers[node].crash()
    stage.run(2 * SILENT_MS)
    assert stage.view.nodes == ("s3",)
    assert 7 in stage.sequencers["s3"].held.all


def test_when_no_member_is_left_nothing_goes_on_until_one_is_back() -> None:
    stage = running()
    assert stage.append(7)
    for replica in stage.sequencers.values():
        replica.crash()
    stage.run(5_000)
    assert stage.view.number == 1
    stage.sequencers["s2"].restart()
    stage.run(2_000)
    assert stage.view.nodes == ("s2",)
    assert 7 in stage.sequencers["s2"].held.all


def test_a_member_that_lost_its_memory_is_taken_in_again_at_once() -> None:
    stage = running(memory=True)
    assert stage.append(7)
    stage.sequencers["s3"].crash()
    stage.sequencers["s3"].restart()
    stage.run(500)
    assert stage.view.number == 2
    assert [member.life for member in stage.view.members] == [1, 1, 2]
    assert 7 in stage.sequencers["s3"].held.all


def test_lost_memory_of_all_members_is_lost_by_consent_only() -> None:
    for consent in (False, True):
        stage = running(memory=True, accept_loss=consent)
        assert stage.append(7)
        stage.run(100)
        for primary in ("h0-a", "h1-a"):
            stage.replicas[primary].log = [7, 7, 7]
        stage.replicas["h1-a"].log.append(8)
        stage.run(100)
        for replica in stage.sequencers.values():
            replica.crash()
        stage.run(1_000)
        for replica in stage.sequencers.values():
            replica.restart()
        stage.run(5_000)
        if consent:
            assert stage.view.number == 2
            assert stage.view.base == 3
            assert [number for number, _ in stage.configuration.lost_views] == [1]
            assert stage.controller.counters.lost_views == 1
            assert stage.controller.obstacle is None
            assert stage.taking() == {"s1", "s2", "s3"}
        else:
            assert stage.view.number == 1
            assert "lost" in (stage.controller.obstacle or "")


def test_memory_isnt_lost_as_long_as_one_member_is_only_silent() -> None:
    stage = running(memory=True, accept_loss=True)
    for node in ("s1", "s2"):
        stage.sequencers[node].crash()
        stage.sequencers[node].restart()
    stage.cut.add("s3")
    stage.run(10_000)
    assert stage.view.number == 1
    stage.cut.clear()
    stage.run(2_000)
    assert stage.view.number > 1
    assert stage.controller.counters.lost_views == 0


def test_a_late_letter_of_an_earlier_life_is_no_loss() -> None:
    """A partition held it up; by now the node is a member in a later life."""
    stage = running(memory=True, accept_loss=True, sequencers=("s1",))
    late = stage.sequencers["s1"].present()
    stage.sequencers["s1"].crash()
    stage.sequencers["s1"].restart()
    stage.run(2_000)
    assert (stage.view.number, stage.controller.counters.lost_views) == (2, 1)
    assert stage.append(7)
    stage.host.step(Received("s1", late))
    stage.run(2_000)
    assert (stage.view.number, stage.controller.counters.lost_views) == (2, 1)
    stage.host.crash(kept=True)
    stage.host.start()
    stage.host.step(Received("s1", late))
    stage.run(2_000)
    assert stage.view.number == 2
    assert 7 in stage.sequencers["s1"].held.all


def test_a_late_letter_of_a_lost_disk_is_no_reason_for_a_takeover() -> None:
    stage = running(memory=True, accept_loss=True)
    late = {node: stage.replicas[node].present() for node in ("h0-a", "h0-b")}
    for node in late:
        stage.replicas[node].crash()
        stage.run(1_000)
        stage.replicas[node].restart(disk=stage.new_disk())
        stage.run(RETURN_MS)
    epoch = stage.setup("h0").epoch
    for node, letter in late.items():
        stage.host.step(Received(node, letter))
        stage.run(1_000)
    stage.host.crash(kept=True)
    stage.host.start()
    for node, letter in late.items():
        stage.host.step(Received(node, letter))
    stage.run(1_000)
    assert stage.setup("h0").epoch == epoch


def test_a_clock_that_went_back_between_two_lives_keeps_nobody_out() -> None:
    stage = running(memory=True)
    stage.sequencers["s2"].crash()
    stage.sequencers["s2"].restart()
    stage.sequencers["s2"].life = -5
    stage.run(2_000)
    assert {member.node: member.life for member in stage.view.members}["s2"] == -5


def test_a_loss_is_found_also_when_the_clock_went_back_between_two_lives() -> None:
    """Which life is the later one isn't said by its number, but by what it has been told."""
    stage = running(memory=True, accept_loss=True, sequencers=("s1",))
    stage.sequencers["s1"].crash()
    stage.sequencers["s1"].restart()
    stage.sequencers["s1"].life = -5
    for node in ("h0-a", "h0-b"):
        stage.replicas[node].crash()
        stage.replicas[node].restart(disk=-stage.new_disk())
    stage.run(5_000)
    assert (stage.view.number, stage.controller.counters.lost_views) == (2, 1)
    assert (stage.setup("h0").epoch, stage.controller.counters.lost_shards) == (2, 1)
    assert stage.taking() == {"s1"}


def test_a_view_whose_members_died_before_it_was_configured_loses_nothing() -> None:
    """The members of the view before are sealed, and hold all that was acknowledged."""
    stage = running(memory=True, accept_loss=True, sequencers=("s1", "s2"))
    assert stage.append(7)
    copying, source = stage.sequencers["s1"], stage.sequencers["s2"]
    copying.crash()
    copying.restart()
    stage.lossy = True
    while copying.next is None:
        if not stage.letters:
            stage.tick()
        elif isinstance(stage.letters[0][2], Prepared):
            stage.letters.pop(0)
        else:
            stage.deliver()
    stage.cut.add("s2")
    stage.lossy, stage.host.fails = False, True
    stage.run(10_000)
    assert copying.next is not None
    copying.crash()
    copying.restart()
    stage.host.fails = False
    stage.run(1_000)
    stage.cut.clear()
    stage.run(10_000)
    counters = stage.controller.counters
    assert (counters.unstarted, counters.lost_views) == (1, 0)
    assert stage.taking() == {"s1", "s2"}
    assert 7 in copying.held.all
    assert 7 in source.held.all


def test_a_node_that_isnt_configured_any_more_leaves_the_view() -> None:
    stage = running()
    stage.host.crash(kept=True)
    stage.sequencer_names = ("s1", "s2")
    stage.host.config = type(stage.host)("k", stage, alone=True).config
    stage.host.start()
    stage.run(1_000)
    assert stage.view.nodes == ("s1", "s2")


def test_a_backup_takes_over_from_a_silent_primary_and_the_old_one_learns_to_come_back() -> None:
    stage = running()
    primary = stage.replicas["h0-a"]
    primary.log = [1, 2]
    stage.run(100)
    primary.crash()
    stage.run(SILENT_MS)
    setup = stage.setup("h0")
    assert (setup.epoch, setup.primary, setup.replicas) == (2, "h0-b", ("h0-b",))
    assert stage.replicas["h0-b"].log == [1, 2]
    assert stage.view.number == 1
    primary.restart()
    stage.run(RETURN_MS)
    setup = stage.setup("h0")
    assert (setup.epoch, setup.primary, setup.replicas) == (3, "h0-b", ("h0-a", "h0-b"))
    assert stage.controller.counters.takeovers == 1


def test_a_shard_goes_on_without_a_silent_backup() -> None:
    stage = running()
    stage.replicas["h1-b"].crash()
    stage.run(SILENT_MS)
    setup = stage.setup("h1")
    assert (setup.epoch, setup.primary, setup.replicas) == (2, "h1-a", ("h1-a",))
    stage.replicas["h1-b"].restart(disk=stage.new_disk())
    stage.run(RETURN_MS)
    setup = stage.setup("h1")
    assert setup.replicas == ("h1-a", "h1-b")
    assert setup.disks[1] == stage.replicas["h1-b"].disk
    assert stage.controller.counters.rearranged == 2


def test_a_primary_that_lost_its_disk_isnt_counted_on() -> None:
    stage = running()
    primary = stage.replicas["h0-a"]
    primary.log = [1]
    stage.run(100)
    primary.crash()
    primary.restart(disk=stage.new_disk())
    stage.run(RETURN_MS)
    setup = stage.setup("h0")
    assert (setup.primary, setup.replicas) == ("h0-b", ("h0-a", "h0-b"))
    assert primary.log == [1]


def test_a_shard_of_which_nothing_is_left_waits() -> None:
    stage = running()
    both = [stage.replicas[node] for node in ("h0-a", "h0-b")]
    for replica in both:
        replica.crash()
    stage.run(3_000)
    assert stage.setup("h0").epoch == 1
    for replica in both:
        replica.restart(disk=stage.new_disk())
    stage.run(3_000)
    assert stage.setup("h0").epoch == 1
    assert "lost" in (stage.controller.obstacle or "")


def test_a_shard_that_lost_all_in_memory_begins_anew_by_consent() -> None:
    stage = running(memory=True, accept_loss=True)
    stage.replicas["h1-a"].stable = 5
    stage.run(100)
    for node in ("h0-a", "h0-b"):
        stage.replicas[node].crash()
        stage.replicas[node].restart(disk=stage.new_disk())
    stage.run(1_000)
    setup = stage.setup("h0")
    assert (setup.epoch, setup.begins) == (2, 5)
    assert stage.controller.counters.lost_shards == 1


def test_a_shard_whose_replicas_all_restart_goes_on_with_its_primary() -> None:
    stage = running()
    both = [stage.replicas[node] for node in ("h0-a", "h0-b")]
    for replica in both:
        replica.crash()
    stage.run(100)
    for replica in both:
        replica.restart()
    stage.run(1_000)
    assert stage.setup("h0").primary == "h0-a"
    assert stage.controller.obstacle is None


def test_another_life_of_a_controller_goes_on_where_the_one_before_was() -> None:
    stage = running()
    before = stage.configuration
    stage.host.crash(kept=True)
    stage.run(2_000)
    assert stage.taking() == {"s1", "s2", "s3"}, "appends don't need it"
    stage.sequencers["s2"].crash()
    stage.host.start()
    stage.run(2_000)
    assert stage.configuration.term == before.term + 1
    assert stage.view.nodes == ("s1", "s3")


def test_a_controller_that_died_after_its_seals_is_followed_by_one_that_ends_the_view() -> None:
    stage = running()
    stage.sequencers["s2"].crash()
    stage.run(400)
    stage.lossy = True
    while not any(replica.sealed for replica in stage.sequencers.values()):
        stage.tick()
        while stage.letters and not any(r.sealed for r in stage.sequencers.values()):
            stage.deliver()
    stage.host.crash(kept=False)
    stage.letters.clear()
    stage.lossy = False
    stage.sequencers["s2"].restart()
    stage.host.start()
    stage.run(500)
    assert stage.view.number == 2
    assert stage.taking() == {"s1", "s2", "s3"}


def test_a_controller_that_died_after_it_sealed_a_shard_is_followed_by_one_that_goes_on() -> None:
    stage = running()
    for node in ("h0-a", "h0-b"):
        stage.replicas[node].sealed = 2
        stage.replicas[node].role = type(stage.replicas[node].role).SEALED
    stage.run(500)
    setup = stage.setup("h0")
    assert (setup.epoch, setup.replicas) == (2, ("h0-a", "h0-b"))


def test_a_seal_that_is_answered_twice_begins_no_second_takeover() -> None:
    stage = running()
    stage.replicas["h0-a"].crash()
    letters = list[ShardSealed]()
    while stage.host.group is None:
        stage.tick()
        while stage.letters and stage.host.group is None:
            letters += [it for _, _, it in stage.letters if isinstance(it, ShardSealed)]
            stage.deliver()
    assert letters
    stage.host.step(Received("h0-b", letters[0]))
    stage.run(2_000)
    setup = stage.setup("h0")
    assert (setup.epoch, setup.primary, setup.replicas) == (2, "h0-b", ("h0-b",))


def test_a_journal_that_has_forgotten_what_nodes_know_decides_nothing() -> None:
    stage = running()
    stage.host.crash(kept=True)
    stage.host.journal.entries.clear()
    stage.sequencers["s2"].crash()
    stage.host.start()
    stage.run(10_000)
    assert stage.configuration.view is None
    assert "forgotten" in (stage.controller.obstacle or "")
    assert stage.taking() == set(), "nobody is a member of no view"
    assert {n for n, r in stage.sequencers.items() if r.takes} == {"s1", "s3"}


def test_what_couldnt_be_journaled_is_told_to_nobody_and_journaled_later() -> None:
    stage = running()
    stage.host.fails = True
    stage.sequencers["s2"].crash()
    stage.run(2_000)
    assert len(stage.view.nodes) == 3
    assert "journal" in (stage.controller.obstacle or "")
    stage.host.fails = False
    stage.run(2_000)
    assert stage.view.nodes == ("s1", "s3")
    assert stage.controller.obstacle is None


def test_the_status_says_what_is_wrong() -> None:
    stage = running()
    status = stage.controller.status()
    assert (status.leads, status.obstacle, status.changing, status.silent) == (True, None, "", ())
    for replica in (*stage.sequencers.values(), stage.replicas["h0-a"]):
        replica.crash()
    stage.replicas["h0-b"].crash()
    stage.run(2_000)
    status = stage.controller.status()
    assert status.configuration == stage.configuration
    assert status.silent == ("s1", "s2", "s3", "h0-a", "h0-b")


def test_nobody_speaks_for_another_node_and_a_stranger_decides_nothing() -> None:
    stage = running()
    present = replace(stage.sequencers["s2"].present(), at=stage.now)
    shard = replace(stage.replicas["h0-a"].present(), at=stage.now)
    far = 1 << 60
    lies = [
        ("stranger", replace(present, life=far, at=far)),
        ("stranger", replace(present, node="stranger", version=far)),
        ("s3", replace(present, version=far)),
        ("stranger", replace(shard, version=far)),
        ("stranger", replace(shard, node="stranger")),
        ("h0-b", ShardSealed(shard="h0", node="h0-a", epoch=2, last_term=0, last=0)),
        ("s3", Prepared(ballot=Ballot(2, 1), node="s2", life=1, base=0)),
        ("s3", Sealed(ballot=Ballot(2, 1), view=1, node="s2", life=1, ordered=0, records=0)),
        ("stranger", OpenShard("h0", False)),
    ]
    for sender, letter in lies:
        stage.host.step(Received(sender, letter))
    assert stage.controller.counters.nonsense == len(lies)
    joins = replace(shard, shard="more", node="stranger", nodes=("stranger", "x"), version=far)
    stage.host.step(Received("stranger", joins))
    stage.run(2 * SILENT_MS)
    assert stage.controller.obstacle is None
    assert stage.view.number == 1
    assert [setup.open for setup in stage.configuration.shards] == [True, True]
    assert [setup.epoch for setup in stage.configuration.shards] == [1, 1]
