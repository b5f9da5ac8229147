"""Sequencers of one log that were started with different durabilities."""

from tests.unit.core.erwin.controller.stage import LIMITS, Stage, config_of

RETURN_MS = LIMITS.return_ms + 1_000


def running(*, memory: bool = False) -> Stage:
    stage = Stage(memory=memory)
    for replica in stage.sequencers.values():
        replica.fsync = not memory
    stage.run(1_000)
    assert stage.taking() == {"s1", "s2", "s3"}
    return stage


def start_anew(stage: Stage, node: str, *, fsync: bool) -> None:
    replica = stage.sequencers[node]
    replica.crash()
    replica.life += 1
    replica.forget()
    replica.memory, replica.fsync, replica.up = not fsync, fsync, True


def test_a_sequencer_of_another_durability_is_no_member_and_both_are_named() -> None:
    stage = running()
    assert stage.append(1)
    start_anew(stage, "s3", fsync=False)
    stage.run(RETURN_MS)
    assert stage.taking() == {"s1", "s2"}
    obstacle = stage.controller.obstacle or ""
    assert "s3 was started with durability memory" in obstacle
    assert "durability is fsync" in obstacle
    start_anew(stage, "s3", fsync=True)
    stage.run(RETURN_MS)
    assert stage.taking() == {"s1", "s2", "s3"}
    assert stage.controller.obstacle is None


def test_a_log_whose_sequencers_get_another_durability_one_by_one_loses_nothing() -> None:
    stage = running(memory=True)
    assert stage.append(1)
    for number, node in enumerate(("s1", "s2", "s3"), 2):
        start_anew(stage, node, fsync=True)
        stage.run(RETURN_MS)
        assert stage.controller.configuration.fsync is (number > 2), "a majority decides"
        assert stage.append(number)
    assert stage.taking() == {"s1", "s2", "s3"}
    assert stage.controller.obstacle is None
    assert set(stage.sequencers["s1"].held.all) == {1, 2, 3, 4}


def test_a_controller_of_another_durability_changes_nothing_and_gives_nothing_up() -> None:
    stage = running()
    assert stage.append(1)
    stage.memory, stage.accept_loss = True, True
    stage.host.crash(kept=True)
    stage.host.config = config_of(stage, stage.host.node, alone=True)
    stage.host.start()
    stage.run(RETURN_MS)
    assert stage.controller.configuration.fsync
    for node in ("s1", "s2", "s3"):
        start_anew(stage, node, fsync=True)
    stage.run(RETURN_MS)
    assert "lost" in (stage.controller.obstacle or "")
    assert not stage.taking()
