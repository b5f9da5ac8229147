"""Members for which appends wait are done without, the leader too."""

from tests.unit.core.erwin.controller.test_controller import running


def test_a_straggler_is_taken_out_and_comes_back_later() -> None:
    stage = running()
    stage.slow.add("s2")
    for record in range(160):
        assert stage.append(record)
        stage.run(100)
    assert stage.view.nodes == ("s1", "s3")
    assert stage.controller.counters.stragglers == 1
    stage.slow.clear()
    stage.run(5_000)
    assert stage.view.nodes == ("s1", "s3"), "it rests"
    stage.run(30_000)
    assert stage.view.nodes == ("s1", "s2", "s3")
    assert set(range(160)) <= set(stage.sequencers["s2"].held.all)


def test_a_leader_that_straggles_is_taken_out_too() -> None:
    """The others order what it says, so only what they have taken is ahead of it."""
    stage = running()
    leader = stage.view.leader
    others = [node for node in stage.view.nodes if node != leader]
    stage.slow.add(leader)
    for record in range(160):
        assert stage.append(record, *others)
        if record >= 15 and leader in stage.view.nodes:
            assert stage.append(record - 15, leader)
        stage.run(100)
    assert stage.view.nodes == tuple(others)
    assert stage.controller.counters.stragglers == 1


def test_what_one_member_alone_has_taken_makes_no_straggler_of_the_others() -> None:
    """Its client died before it sent the append to them."""
    stage = running()
    stage.slow.update(stage.view.nodes)
    assert stage.append(7, "s3")
    stage.run(20_000)
    assert stage.view.number == 1


def test_a_straggler_of_two_members_stays() -> None:
    stage = running(sequencers=("s1", "s2"))
    stage.slow.add("s2")
    for record in range(160):
        assert stage.append(record)
        stage.run(100)
    assert stage.view.nodes == ("s1", "s2")
