"""Shards that are added, closed, removed, and added again."""

from tests.unit.core.erwin.controller.stage import running


def test_a_shard_is_added_when_all_its_replicas_are_there() -> None:
    stage = running()
    stage.replicas["h0-a"].stable = 9
    stage.add_nodes("h2", ("h2-a", "h2-b"))
    stage.replicas["h2-b"].crash()
    stage.run(1_000)
    assert len(stage.configuration.shards) == 2
    stage.replicas["h2-b"].restart()
    stage.run(1_000)
    setup = stage.setup("h2")
    assert (setup.number, setup.epoch, setup.begins, setup.open) == (2, 1, 9, True)
    assert stage.view.number == 1, "no view change is needed"


def test_a_closed_shard_is_removed_when_all_is_trimmed_and_can_be_added_again() -> None:
    stage = running()
    assert stage.append(1)
    stage.run(100)
    stage.ask("h1", to_open=False)
    stage.run(500)
    assert not stage.setup("h1").open
    assert not stage.setup("h1").removed
    stage.replicas["h1-a"].trimmed = 1
    stage.run(500)
    assert stage.setup("h1").removed
    stage.run(1_000)
    assert len(stage.configuration.shards) == 2, "it still says that it is there"
    stage.ask("h1", to_open=True)
    stage.run(1_000)
    setup = stage.setup("h1")
    assert (setup.number, setup.epoch, setup.open, setup.removed) == (2, 2, True, False)
    assert stage.configuration.shards[1].removed


def test_what_was_appended_right_before_a_shard_was_closed_keeps_it() -> None:
    """Members said how long the log is before that, and didn't know of the closing."""
    stage = running()
    stage.run(100)
    assert stage.append(1)
    stage.ask("h1", to_open=False)
    stage.run(500)
    assert not stage.setup("h1").open
    assert not stage.setup("h1").removed
    stage.replicas["h1-a"].trimmed = 1
    stage.run(500)
    assert stage.setup("h1").removed


def test_a_removed_shard_is_added_again_though_all_its_journals_are_new() -> None:
    """As when its processes and volumes went after it was removed."""
    stage = running()
    assert stage.append(1)
    stage.run(100)
    stage.ask("h1", to_open=False)
    stage.run(500)
    stage.replicas["h1-a"].trimmed = 1
    stage.run(500)
    assert stage.setup("h1").removed
    for node in ("h1-a", "h1-b"):
        stage.replicas[node].crash()
    stage.run(1_000)
    for node in ("h1-a", "h1-b"):
        stage.replicas[node].restart(disk=stage.new_disk())
    stage.run(1_000)
    stage.ask("h1", to_open=True)
    stage.run(1_000)
    setup = stage.setup("h1")
    assert (setup.number, setup.open, setup.removed) == (2, True, False)
    disks = tuple(stage.replicas[node].disk for node in ("h1-a", "h1-b"))
    assert (setup.replicas, setup.disks) == (("h1-a", "h1-b"), disks)
    assert setup.epoch == 2, "it isn't taken over: nothing was lost"


def test_a_shard_that_lasts_isnt_removed_and_the_last_one_isnt_closed() -> None:
    stage = running()
    stage.ask("h1", to_open=False)
    stage.run(100)
    stage.ask("h0", to_open=False)
    stage.ask("h9", to_open=False)
    stage.run(500)
    assert [setup.open for setup in stage.configuration.shards] == [True, False]
    stage.ask("h1", to_open=True)
    stage.run(500)
    assert stage.setup("h1").open
