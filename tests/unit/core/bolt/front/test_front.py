"""Single stories of a lazy front: who dies when, and what the log holds afterwards."""

import pytest
from tests.unit.core.bolt.front.world import CONTROLLER, SECOND, World

from anabranch.core.bolt.front.sequencer import FrontSequencer
from anabranch.core.bolt.protocol.commands import DeleteLog, ForkLog, Promote, SetAppends, Trim
from anabranch.core.bolt.protocol.fronts import AppendFront, FrontEpoch, FrontMark, LeadFront
from anabranch.core.errors import SequenceGap, StaleView
from anabranch.core.errors.refused import Refused
from anabranch.core.machine import Drain, Rest
from anabranch.core.sequencing.protocol.ids import AppendId
from anabranch.core.types import Kind


def quiet(*, fsync: bool = True, seed: int = 1) -> World:
    """Without faults, in its first view."""
    world = World(seed, fsync=fsync)
    world.calm = True
    for _ in range(60):
        world.run(SECOND)
        if world.front.epoch.begun:
            return world
    raise AssertionError("no leader has begun")


def leader(world: World) -> FrontSequencer:
    view = world.front.configuration.view
    assert view is not None
    machine = world.nodes[view.leader].machine
    assert isinstance(machine, FrontSequencer)
    return machine


def crash_leader(world: World) -> str:
    name = leader(world).config.node
    world.crash(world.nodes[name])
    return name


def settled(world: World) -> World:
    """Everything that was sent is acknowledged and in the log, once."""
    for _ in range(30):
        world.run(SECOND)
        for each in world.sent.values():
            if not each.acknowledged:
                world.try_again(each)
    world.check_end()
    assert sorted(world.in_log) == sorted(world.sent)
    return world


@pytest.mark.parametrize("fsync", [True, False])
def test_only_a_leader_whose_ring_is_in_memory_waits_for_the_log_before_it_ends(
    fsync: bool,
) -> None:
    world = quiet(fsync=fsync)
    world.append(0)
    world.deaf = True
    world.run(SECOND)
    rests = Rest() in leader(world).step(world.now, Drain())
    assert rests is fsync


def test_what_was_committed_and_not_dropped_is_not_committed_again() -> None:
    world = quiet()
    world.append(0)
    world.deaf = True
    world.run(SECOND)
    assert len(world.in_log) == 1
    crash_leader(world)
    world.deaf = False
    settled(world)
    assert world.front.epoch.view == 2


def test_nor_after_a_second_view_change_before_the_ids_are_released() -> None:
    world = quiet()
    world.append(0)
    world.deaf = True
    world.run(SECOND)
    first = crash_leader(world)
    world.deaf = False
    world.run(20 * SECOND)
    assert world.front.epoch.view == 2
    assert world.front.ids(), "nothing was released yet"
    world.start(world.nodes[first])
    world.run(60 * SECOND)
    crash_leader(world)
    world.run(20 * SECOND)
    settled(world)
    assert world.front.epoch.view > 2


def test_a_leader_whose_view_is_over_commits_nothing_more() -> None:
    world = quiet()
    before = world.front.epoch
    world.append(0)
    world.run(2 * SECOND)
    crash_leader(world)
    world.run(20 * SECOND)
    batch = world.sent[AppendId(0, 0, 0)].batch
    mark = FrontMark(before, world.front.number + 1, 0)
    late = world._commit(AppendFront(log=world.log, mark=mark, batches=[batch]))
    assert isinstance(late, Refused)
    assert late.code == StaleView.code
    settled(world)


def test_a_batch_behind_one_that_is_missing_is_refused_until_that_came() -> None:
    world = quiet()
    world.append(0)
    settled(world)
    batch = world.sent[AppendId(0, 0, 0)].batch
    mark = FrontMark(world.front.epoch, world.front.number + 2, 0)
    early = world._commit(AppendFront(log=world.log, mark=mark, batches=[batch]))
    assert isinstance(early, Refused)
    assert early.code == SequenceGap.code


def test_an_append_that_only_the_old_leader_had_is_answered_in_the_next_view() -> None:
    world = quiet()
    name = leader(world).config.node
    other = next(each for each in world.names if each != name)
    world.crash(world.nodes[other])
    world.append(0)
    world.deaf = True
    world.run(SECOND)
    assert world.in_log == [AppendId(0, 0, 0)]
    assert not world.sent[AppendId(0, 0, 0)].acknowledged
    world.crash(world.nodes[name])
    world.deaf = False
    world.start(world.nodes[other])
    world.run(20 * SECOND)
    settled(world)


def test_a_full_ring_holds_appends_back_until_the_store_is_there_again() -> None:
    world = quiet(seed=3)
    world.away_until = world.now + 60 * SECOND
    for producer in range(60):
        world.append(producer)
    world.run(20 * SECOND)
    acknowledged = sum(each.acknowledged for each in world.sent.values())
    assert 0 < acknowledged < 60, "the ring has room for some"
    assert not world.in_log
    assert leader(world).held_up
    world.run(60 * SECOND)
    settled(world)
    assert not leader(world).held_up


def test_ordering_goes_on_past_the_point_of_an_undecided_fork() -> None:
    world = quiet()
    world.append(0)
    world.run(2 * SECOND)
    world.apply(ForkLog(world.log, Kind.CONTINUOUS, promotable=True))
    for producer in range(1, 5):
        world.append(producer)
    world.run(5 * SECOND)
    assert len(world.in_log) == 5
    assert world.parked
    (fork,) = world.state.replica.forest.logs[world.log].promotable_forks
    world.apply(Promote(fork[1]))
    settled(world)


@pytest.mark.parametrize("fsync", [True, False])
def test_all_replicas_restart(fsync: bool) -> None:
    world = quiet(fsync=fsync)
    world.away_until = world.now + 2 * SECOND
    for producer in range(4):
        world.append(producer)
    world.run(SECOND)
    assert all(each.acknowledged for each in world.sent.values())
    for name in world.names:
        world.crash(world.nodes[name])
    world.run(SECOND)
    for name in world.names:
        world.start(world.nodes[name])
    world.run(30 * SECOND)
    world.note_losses()
    if fsync:
        settled(world)
        assert world.front.epoch > FrontEpoch(1, 1), "a leader has begun again"
    else:
        assert world.lost_view == 1
        assert not world.in_log
        world.append(9)
        world.run(2 * SECOND)
        assert world.in_log == [AppendId(9, 0, 0)]


def test_a_controller_that_restarts_changes_nothing() -> None:
    world = quiet()
    world.crash(world.nodes[CONTROLLER])
    world.append(0)
    world.run(2 * SECOND)
    world.start(world.nodes[CONTROLLER])
    world.run(20 * SECOND)
    settled(world)
    assert world.front.epoch == FrontEpoch(1, 1)
    assert world.front.configuration.term == 2


def test_a_front_goes_on_when_its_log_is_trimmed_and_ends_when_it_is_deleted() -> None:
    world = quiet()
    world.append(0)
    settled(world)
    world.apply(Trim(world.log, 1))
    world.append(1)
    settled(world)
    world.apply(DeleteLog(world.log))
    machine = leader_before(world)
    world.send_append(2)
    world.run(5 * SECOND)
    world.send_append(3)
    world.run(5 * SECOND)
    assert "squashed" in world.refused
    assert machine.obstacle is not None


def leader_before(world: World) -> FrontSequencer:
    """The leader as its nodes know it: the log says nothing any more."""
    machines = (world.nodes[name].machine for name in world.names)
    found = [m for m in machines if isinstance(m, FrontSequencer) and m.committing is not None]
    (machine,) = found
    return machine


def test_a_front_that_is_to_end_empties_its_rings_first() -> None:
    """Also across a view change; what is sent by then is in the log, and nothing else is taken."""
    world = quiet()
    world.away_until = world.now + 5 * SECOND
    for producer in range(4):
        world.append(producer)
    world.run(SECOND)
    assert all(each.acknowledged for each in world.sent.values())
    assert world.in_log == []
    world.apply(SetAppends(world.log, None))
    world.run(2 * SECOND)
    crash_leader(world)
    world.run(20 * SECOND)
    assert sorted(world.in_log) == sorted(world.sent)
    assert world.state.replica.forest.logs[world.log].front is not None
    assert world.state.replica.forest.fronts == {}
    world.send_append(9)
    world.run(SECOND)
    assert len(world.in_log) == 4


def test_what_comes_when_a_front_is_to_end_may_or_may_not_be_there() -> None:
    world = quiet()
    world.apply(SetAppends(world.log, None))
    world.run(2 * SECOND)
    world.append(0)
    world.run(SECOND)
    assert not any(each.acknowledged for each in world.sent.values())
    assert world.in_log == []
    assert set(world.refused) & {"outcome-unknown", "bad-request"}


def test_a_controller_whose_term_is_over_finds_out_when_nothing_changes() -> None:
    """Its question for a term was done twice, and the first answer came."""
    world = quiet()
    world.apply(LeadFront(world.log, world.names))
    world.apply(SetAppends(world.log, None))
    world.run(10 * SECOND)
    assert world.state.replica.forest.fronts == {}
