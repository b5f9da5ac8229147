"""Nodes that are about to end, and what a controller says of itself."""

from tests.unit.core.erwin.controller.stage import LIMITS, Stage

RETURN_MS = LIMITS.return_ms + 1_000
SILENT_MS = 1_000


def running(*, reports: bool = False) -> Stage:
    stage = Stage(reports=reports)
    stage.run(1_000)
    assert stage.view.number == 1
    return stage


def test_a_view_goes_on_without_a_member_that_is_about_to_end() -> None:
    stage = running()
    assert stage.append(1)
    stage.sequencers["s1"].leaving = True
    stage.run(350)
    assert stage.taking() == {"s2", "s3"}, "nobody waits for its silence"
    assert stage.controller.status().leaving == ("s1",)
    assert 1 in stage.sequencers["s2"].held.all
    stage.run(RETURN_MS)
    assert stage.view.number == 2
    stage.sequencers["s1"].leaving = False
    stage.run(RETURN_MS)
    assert stage.taking() == {"s1", "s2", "s3"}


def test_members_that_are_all_about_to_end_stay() -> None:
    stage = running()
    for replica in stage.sequencers.values():
        replica.leaving = True
    stage.run(RETURN_MS)
    assert stage.view.number == 1
    assert stage.append(1)


def test_a_shard_goes_on_without_a_replica_that_is_about_to_end() -> None:
    stage = running()
    stage.replicas["h0-a"].leaving = True
    stage.replicas["h1-b"].leaving = True
    stage.run(400)
    assert stage.setup("h0").replicas == ("h0-b",), "another primary takes over"
    assert stage.setup("h1").replicas == ("h1-a",)
    assert set(stage.controller.status().leaving) == {"h0-a", "h1-b"}
    stage.replicas["h0-a"].leaving = stage.replicas["h1-b"].leaving = False
    stage.run(2 * RETURN_MS)
    assert {*stage.setup("h0").replicas} == {"h0-a", "h0-b"}
    assert {*stage.setup("h1").replicas} == {"h1-a", "h1-b"}


def test_replicas_that_are_all_about_to_end_stay() -> None:
    stage = running()
    for node in ("h0-a", "h0-b"):
        stage.replicas[node].leaving = True
    stage.run(RETURN_MS)
    assert stage.setup("h0").epoch == 1


def test_a_controller_says_what_it_does_to_the_sequencers() -> None:
    stage = running(reports=True)
    stage.reports.clear()
    stage.sequencers["s3"].crash()
    stage.run(2 * SILENT_MS)
    last = stage.reports["s1"][-1]
    assert last.node == stage.host.node
    assert last.silent == ("s3",)
    assert last.changing == ""
    stage.reports.clear()
    stage.run(2_000)
    assert 1 <= len(stage.reports["s1"]) <= 3, "repeated now and then"
