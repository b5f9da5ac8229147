"""A log is in the journal as it is in memory: cut, trimmed, read back, recovered."""

from collections.abc import Callable

import pytest
from tests.unit.core.replication.replica import PATIENCE
from tests.unit.core.replication.stage import Stage, led

from anabranch.core.replication.entries import Item
from anabranch.core.types import MS


def test_no_ops_are_one_item() -> None:
    stage = led("a", "b")
    stage["a"].do(lambda: stage["a"].replica.fill(1_000))
    assert len(stage["a"].group or ()) == 1
    stage.settle()
    assert stage["b"].told == [Item(0, 1_000, b"")]
    assert stage["a"].replica.log.durable == 1_000


def test_a_full_disk_acknowledges_nothing_and_is_tried_again() -> None:
    stage = led("a", "b")
    stage.append("a", b"x")
    stage.deliver()
    stage["a"].fail_to_write()
    assert "no space" in (stage["a"].replica.log.journal.obstacle or "")
    stage.settle()
    assert stage["a"].replica.log.durable == 0
    stage.wait(100 * MS)
    assert stage["a"].replica.log.journal.obstacle is None
    assert stage["a"].replica.log.durable == 1


def test_cutting_back_keeps_whole_items_and_the_others_follow() -> None:
    stage = led("a", "b")
    stage["a"].do(lambda: stage["a"].replica.append(b"three", 3))
    stage.append("a", b"x", b"y")
    stage.settle()
    stage["a"].do(lambda: stage["a"].replica.truncate(2))
    stage.append("a", b"z")
    stage.wait(PATIENCE)
    assert stage["a"].told == stage["b"].told == [Item(0, 3, b"three"), Item(3, 1, b"z")]
    assert stage["a"].replica.log.durable == 4


def test_old_items_are_read_back_in_pieces_past_a_failure() -> None:
    stage = led("a", cache_bytes=1_000)
    batches = [bytes([nth]) * 50 for nth in range(20)]
    for batch in batches:
        stage.append("a", batch)
        stage["a"].do(lambda: stage["a"].replica.log.note(b"between"))
    stage.settle()
    assert stage["a"].replica.log.items(0, 20) is None
    recent = stage["a"].replica.log.items(18, 20)
    assert recent is not None
    assert [item.batch for item in recent] == batches[18:]

    told = stage.fetched("a", 3, 12, bytes_max=400)
    stage["a"].read(fails=True)
    assert told == []
    assert stage["a"].replica.log.journal.unreadable is not None
    stage.wait(200 * MS)
    stage["a"].read()
    assert [item.batch for item in told[0]] == batches[3:5]


def test_what_was_cut_while_it_was_read_is_not_told() -> None:
    stage = led("a", cache_bytes=0)
    stage.append("a", b"x", b"y", b"z")
    stage.settle()
    told = stage.fetched("a", 1, 3)
    stage["a"].do(lambda: stage["a"].replica.truncate(1))
    stage.append("a", b"new")
    stage.settle()
    stage["a"].read()
    stage["a"].read()
    assert told == [[Item(1, 1, b"new")]]


def recovered(act: Callable[[Stage], None]) -> None:
    """After a fall the owner has what it had, and the journal can still be read."""
    stage = led("a", cache_bytes=300)
    for nth in range(30):
        stage.append("a", b"%d" % nth)
        stage.settle()
    act(stage)
    stage.settle()
    before = stage["a"].told, stage["a"].replica.log.first
    stage["a"].crash(kept=False)
    stage["a"].start(stage.now)
    stage.arrange(1, "a", "a")
    stage.settle()
    assert (stage["a"].told, stage["a"].replica.log.first) == before
    assert stage["a"].replica.log.durable == stage["a"].replica.log.last
    first = stage["a"].replica.log.first
    told = stage.fetched("a", first, 30)
    stage["a"].read()
    assert told[0][0].batch == b"%d" % first


@pytest.mark.parametrize("below", [0, 1, 17, 29])
def test_a_trimmed_log_recovers(below: int) -> None:
    recovered(lambda stage: stage["a"].trim(below))


def test_a_log_trimmed_twice_recovers() -> None:
    def act(stage: Stage) -> None:
        stage["a"].trim(5)
        stage.append("a", b"x")
        stage["a"].trim(9)

    recovered(act)


def test_a_log_trimmed_to_its_end_goes_on_there() -> None:
    stage = led("a")
    stage.append("a", b"x", b"y")
    stage.settle()
    stage["a"].trim(2)
    assert not stage["a"].disk.entries
    stage["a"].crash(kept=False)
    stage["a"].start(0)
    stage.arrange(1, "a", "a")
    stage.append("a", b"z")
    stage.settle()
    assert stage["a"].told == [Item(2, 1, b"z")]
