"""Mode st: data from clients, bound when a row names it; no-ops, late data, orphans, takeovers."""

import pytest
from tests.unit.core.erwin.shard.erwin_stage import Stage, batch

from anabranch.core.errors.refused import Refused
from anabranch.core.erwin.protocol.letters import LearnShard, SealShard, ShardSealed
from anabranch.core.erwin.protocol.messages import Stored
from anabranch.core.erwin.protocol.rows import Fence, Mode, Row
from anabranch.core.erwin.shard import unordered as unordered_module
from anabranch.core.erwin.shard.unordered import Unordered
from anabranch.core.limits import Limits
from anabranch.core.machine import Received
from anabranch.core.producers import REQUEST_EPOCH
from anabranch.core.records.record import Record, encode
from anabranch.core.sequencing.protocol.ids import AppendId

LIMITS = Limits(noop_ms=1_000, orphan_ms=10_000)
LATER = Fence(2, 1)


def stage(limits: Limits = LIMITS, **more: int) -> Stage:
    return Stage(mode=Mode.ST, limits=limits, **more)  # type: ignore[arg-type]


def data(stage: Stage, sequence: int, *nodes: str, lowest: int = 0, epoch: int = 1) -> list[int]:
    content = batch(f"v{sequence}", sequence=sequence)
    return [stage.data(node, content, lowest=lowest, epoch=epoch) for node in nodes or ("a1", "a2")]


def row(first: int, sequence: int, shard: int = 0) -> Row:
    return Row(first, 1, shard, AppendId(7, 0, sequence))


def code(stage: Stage, token: int) -> str:
    refused = stage.answer(token)
    assert isinstance(refused, Refused), refused
    return refused.code


def unordered(stage: Stage, node: str) -> Unordered:
    return stage.nodes[node].machine.unordered


def test_data_is_acknowledged_when_it_is_journaled() -> None:
    st = stage()
    st.nodes["a1"].held = True
    first, second = data(st, 1)
    assert st.waits(first)
    assert st.answer(second) == Stored()
    st.nodes["a1"].held = False
    st.settle()
    assert st.answer(first) == Stored()


def test_a_row_binds_the_batch_that_it_names() -> None:
    st = stage()
    data(st, 1)
    data(st, 2)
    st.push("a1", 0, [row(0, 2), row(1, 1)])
    st.push("a1", 2, [], stable=2)
    assert st.pushed("a1").upto == 2
    assert st.contents(st.read("a1", 0)) == [(0, ["v2"]), (1, ["v1"])]
    assert unordered(st, "a1").held_bytes == 0


@pytest.mark.parametrize("told", [2, 1_000])
def test_a_batch_of_another_number_of_records_than_the_row_says_becomes_no_ops(told: int) -> None:
    st = stage()
    data(st, 1)
    data(st, 2)
    st.push("a1", 0, [Row(0, told, 0, AppendId(7, 0, 1)), row(told, 2)])
    st.push("a1", told + 1, [], stable=told + 1)
    assert st.pushed("a1").noops == told
    assert st.contents(st.read("a1", 0)) == [(0, []), (told, ["v2"])]
    assert unordered(st, "a1").held_bytes == 0
    (late,) = data(st, 1, "a1")
    assert code(st, late) == "record-voided"


def test_a_row_waits_for_its_data_and_those_behind_it_wait_too() -> None:
    st = stage()
    data(st, 2)
    st.push("a1", 0, [row(0, 1)])
    st.push("a1", 1, [row(1, 2)])
    assert st.pushed("a1").upto == 0
    assert st.pushed("a1").wanted == -1
    data(st, 1)
    assert st.pushed("a1").upto == 2


def test_data_that_does_not_come_in_time_becomes_no_ops_and_is_refused_then() -> None:
    st = stage()
    data(st, 1, "a2")
    data(st, 2)
    st.push("a1", 0, [row(0, 1), row(1, 2)])
    st.sleep(999)
    assert st.pushed("a1").upto == 0
    st.sleep(1)
    assert st.pushed("a1").upto == 2
    assert st.pushed("a1").noops == 1
    (early,) = data(st, 1, "a1")
    assert code(st, early) == "unavailable"  # a new fence may still void the row
    st.push("a1", 2, [], stable=2)
    assert st.contents(st.read("a1", 0)) == [(0, []), (1, ["v2"])]
    (late,) = data(st, 1, "a1")
    assert code(st, late) == "record-voided"
    st.sleep(2_000)
    (late,) = data(st, 1, "a2")
    assert code(st, late) == "record-voided"


def test_a_backup_does_not_say_that_it_has_what_its_primary_made_a_no_op() -> None:
    """Alone in the next epoch, it would acknowledge an append that is a no-op (E9)."""
    st = stage()
    data(st, 1, "a2")
    st.push("a1", 0, [row(0, 1)])
    st.sleep(1_000)
    assert st.pushed("a1").upto == 1
    st.crash("a1")
    st.take_over("a", "a2", "a2")
    (early,) = data(st, 1, "a2", epoch=2)
    assert code(st, early) == "unavailable"
    st.push("a2", 1, [], stable=1)
    (late,) = data(st, 1, "a2", epoch=2)
    assert code(st, late) == "record-voided"


def test_a_batch_that_came_with_its_row_makes_nothing_an_orphan() -> None:
    """The backup doesn't know when that append began: the order may have been held up for long, and
    what was acknowledged meanwhile still waits for its row.
    """
    st = stage()
    data(st, 2, "a1")
    data(st, 1)
    st.sleep(LIMITS.orphan_ms + 1)
    st.push("a1", 0, [row(0, 2)])
    st.push("a1", 1, [], stable=1)
    assert st.pushed("a1").upto == 1
    st.sleep(2_000)
    st.crash("a1")
    st.take_over("a", "a2", "a2")
    st.push("a2", 1, [row(1, 1)])
    st.sleep(LIMITS.noop_ms)
    st.push("a2", 2, [], stable=2)
    assert st.contents(st.read("a2", 0)) == [(0, ["v2"]), (1, ["v1"])]


def test_a_no_op_that_a_new_fence_voids_may_be_bound_after_all() -> None:
    st = stage()
    st.push("a1", 0, [row(0, 1)])
    st.sleep(1_000)
    assert st.pushed("a1").upto == 1
    st.push("a1", 0, [], fence=LATER)
    assert [st.answer(token) for token in data(st, 1)] == [Stored(), Stored()]
    st.push("a1", 0, [row(0, 1)], fence=LATER)
    st.push("a1", 1, [], fence=LATER, stable=1)
    assert st.contents(st.read("a1", 0)) == [(0, ["v1"])]


def test_a_batch_outlives_a_row_that_a_new_fence_voids() -> None:
    """Its append may be acknowledged: the next leader orders it again."""
    st = stage()
    data(st, 1)
    data(st, 2)
    st.push("a1", 0, [row(0, 1), row(1, 2)])
    st.push("a1", 0, [row(0, 2)], fence=LATER)
    st.push("a1", 1, [row(1, 1)], fence=LATER)
    assert st.pushed("a1").upto == 2
    st.push("a1", 2, [], fence=LATER, stable=2)
    assert st.contents(st.read("a1", 0)) == [(0, ["v2"]), (1, ["v1"])]


def test_data_that_comes_again_is_answered_again() -> None:
    st = stage()
    for _ in range(2):
        assert [st.answer(token) for token in data(st, 1)] == [Stored(), Stored()]
    st.push("a1", 0, [row(0, 1)])
    st.push("a1", 1, [], stable=1)
    assert [st.answer(token) for token in data(st, 1, "a1")] == [Stored()]
    assert len(unordered(st, "a1")) == 0
    assert st.nodes["a1"].machine.counters.stored_again == 2


def test_a_takeover_binds_what_clients_sent_to_all_replicas() -> None:
    st = stage()
    data(st, 1)
    st.crash("a1")
    st.take_over("a", "a2", "a2")
    st.push("a2", 0, [row(0, 1)])
    st.push("a2", 1, [], stable=1)
    assert st.contents(st.read("a2", 0)) == [(0, ["v1"])]


def test_a_restart_keeps_what_was_acknowledged() -> None:
    st = stage()
    data(st, 1)
    st.restart("a1")
    assert len(unordered(st, "a1")) == 1
    st.push("a1", 0, [row(0, 1)])
    st.push("a1", 1, [], stable=1)
    assert st.contents(st.read("a1", 0)) == [(0, ["v1"])]
    st.sleep(1_500)
    st.restart("a1")
    assert unordered(st, "a1").held_bytes == 0


def test_a_replica_takes_data_of_its_own_epoch_only() -> None:
    """Answers of an old and a new replica mustn't make up one acknowledgement."""
    st = stage()
    (wrong,) = data(st, 1, "a1", epoch=2)
    assert code(st, wrong) == "stale-view"
    st.take_over("a", "a2", "a2", "a1")
    (old,) = data(st, 1, "a1", epoch=1)
    assert code(st, old) == "stale-view"
    assert [st.answer(token) for token in data(st, 1, epoch=2)] == [Stored(), Stored()]


def rejoined() -> Stage:
    """Position 1's data was sent while a1 was away; then a1 became a backup."""
    st = stage()
    st.crash("a1")
    st.take_over("a", "a2", "a2")
    data(st, 1, "a2", epoch=2)
    st.restart("a1")
    st.nodes["a1"].give(Received("c1", LearnShard(shard="a", epoch=2, primary="a2")))
    st.sleep(1_000)
    both = st.setup("a", 0, "a2", "a2", "a1", epoch=3)
    st.arrange(both, st.configuration.shards[1])
    return st


def sealed(stage: Stage, node: str, *, epoch: int) -> bool:
    """Does the replica answer a seal?"""
    stage.letters.clear()
    stage.nodes[node].give(Received("c1", SealShard(shard="a", epoch=epoch)))
    stage.settle()
    return any(isinstance(each, ShardSealed) for _, each in stage.told(node, "c1"))


def test_a_new_replica_is_given_what_clients_sent_before_it_came() -> None:
    st = rejoined()
    assert len(unordered(st, "a1")) == 1
    st.crash("a2")
    st.take_over("a", "a1", "a1")
    st.push("a1", 0, [row(0, 1)])
    st.push("a1", 1, [], stable=1)
    assert st.contents(st.read("a1", 0)) == [(0, ["v1"])]


def test_a_new_replica_is_told_what_became_no_ops_before_it_came() -> None:
    """Alone in a later epoch, it would acknowledge an append that is a no-op (E9)."""
    st = stage()
    st.crash("a1")
    st.take_over("a", "a2", "a2")
    st.push("a2", 0, [row(0, 1)])
    st.sleep(LIMITS.noop_ms)
    for first in range(1, 41):
        data(st, first + 1, "a2", epoch=2)
        st.push("a2", first, [row(first, first + 1)])
    st.push("a2", 41, [], stable=41, trimmed=30)
    st.restart("a1")
    st.nodes["a1"].give(Received("c1", LearnShard(shard="a", epoch=2, primary="a2")))
    st.sleep(1_000)
    st.arrange(st.setup("a", 0, "a2", "a2", "a1", epoch=3), st.configuration.shards[1])
    st.sleep(1_000)
    assert st.nodes["a1"].machine.contents.map.first > 0, "the row is trimmed"
    st.crash("a2")
    assert st.take_over("a", "a1", "a1")
    (late,) = data(st, 1, "a1", epoch=4)
    assert code(st, late) == "record-voided"


def test_a_backup_that_lacks_unordered_data_does_not_take_over() -> None:
    """Acknowledged records would become no-ops (E9)."""
    st = rejoined()
    machine = st.nodes["a1"].machine
    assert machine.unordered.may_be_sealed
    machine.unordered.skipped()
    assert not sealed(st, "a1", epoch=4)


def test_a_backup_takes_over_though_the_first_primary_was_lost_before_it_began() -> None:
    """All that clients had acknowledged is in the backup's own journal."""
    st = stage()
    st.nodes["a2"].machine.unordered.skipped()
    assert sealed(st, "a2", epoch=2)


def test_the_opening_outlives_a_fence_that_voids_it() -> None:
    st = stage()
    st.crash("a1")
    assert st.take_over("a", "a2", "a2")
    for sequence in (1, 2):
        data(st, sequence, "a2", epoch=2)
    st.push("a2", 0, [row(0, 2)])
    st.restart("a1")
    st.nodes["a1"].give(Received("c1", LearnShard(shard="a", epoch=2, primary="a2")))
    st.sleep(1_000)
    st.cut_off.add("a1")
    st.arrange(st.setup("a", 0, "a2", "a2", "a1", epoch=3), st.configuration.shards[1])
    st.push("a2", 0, [], fence=LATER)  # voids the row, and the opening behind it
    st.cut_off.clear()
    st.configure("a1")
    st.sleep(2_000)
    st.crash("a2")
    assert st.take_over("a", "a1", "a1")
    st.push("a1", 0, [row(0, 1), row(1, 2)], fence=LATER)
    st.push("a1", 2, [], fence=LATER, stable=2)
    assert st.contents(st.read("a1", 0)) == [(0, ["v1"]), (1, ["v2"])]


def test_a_replica_that_joins_a_trimmed_shard_has_its_unordered_data() -> None:
    st = stage()
    data(st, 99)
    for nth in range(40):
        data(st, nth)
        st.push("a1", nth, [row(nth, nth)])
    st.push("a1", 40, [], stable=40, trimmed=30)
    assert st.nodes["a1"].machine.replica.log.first > 20
    st.crash("a2")
    assert st.take_over("a", "a1", "a1")
    node = st.nodes["a2"]
    node.disk, node.snapshot, node.last = {}, None, 0
    st.now += 1_000_000
    node.start()
    st.settle()
    node.give(Received("c1", LearnShard(shard="a", epoch=2, primary="a1")))
    st.sleep(1_000)
    st.arrange(st.setup("a", 0, "a1", "a1", "a2", epoch=3), st.configuration.shards[1])
    st.crash("a1")
    assert st.take_over("a", "a2", "a2")
    st.push("a2", 40, [row(40, 99)], stable=40)
    st.push("a2", 41, [], stable=41)
    assert st.contents(st.read("a2", 40)) == [(40, ["v99"])]


def test_unordered_data_survives_a_snapshot() -> None:
    st = stage()
    for nth in range(40):
        data(st, nth)
        st.push("a1", nth, [row(nth, nth)])
    data(st, 99)
    st.push("a1", 40, [], stable=40, trimmed=39)
    assert st.nodes["a1"].snapshot is not None
    for _ in range(2):
        st.restart("a1")
        assert len(unordered(st, "a1")) == 1
    st.push("a1", 40, [row(40, 99)])
    assert st.pushed("a1").upto == 41


def test_what_a_producer_gave_up_is_dropped_when_a_later_append_of_its_is_ordered() -> None:
    st = stage()
    data(st, 1)
    data(st, 2, lowest=1)
    data(st, 3, lowest=3)
    assert len(unordered(st, "a1")) == 3  # acknowledged perhaps, and not ordered yet
    st.push("a1", 0, [row(0, 3)])
    st.push("a1", 1, [], stable=1)
    assert len(unordered(st, "a1")) == 0
    assert st.pushed("a1").upto == 1
    assert st.nodes["a1"].machine.counters.orphans == 2


@pytest.mark.parametrize("far", [0, 1 << 30, (1 << 31) - 8])
def test_a_batch_that_a_backup_has_from_its_primary_makes_no_orphans(far: int) -> None:
    """Nothing tells how far its producer was when it sent that, however far it is by now."""
    st = stage()
    data(st, far + 1, "a1", lowest=far)
    data(st, far + 2, lowest=far)
    data(st, far + 3, lowest=far)
    st.push("a1", 0, [row(0, far + 1)])
    st.push("a1", 1, [row(1, far + 2)], stable=1)
    st.crash("a1")
    st.take_over("a", "a2", "a2")
    st.push("a2", 2, [row(2, far + 3)])
    st.sleep(1_000)
    assert st.pushed("a2").upto == 3
    st.push("a2", 3, [], stable=3)
    assert st.contents(st.read("a2", 2)) == [(2, [f"v{far + 3}"])]


def test_what_is_acknowledged_may_wait_for_its_row_as_long_as_ordering_takes() -> None:
    """Another shard may hold it up; time alone makes no orphan."""
    st = stage()
    data(st, 1)
    st.sleep(60_000)
    assert len(unordered(st, "a1")) == 1
    st.push("a1", 0, [row(0, 1)])
    st.push("a1", 1, [], stable=1)
    assert st.contents(st.read("a1", 0)) == [(0, ["v1"])]


def test_a_restart_makes_no_orphans() -> None:
    """When the data came that is in the journal isn't known any more."""
    st = stage()
    st.sleep(60_000)
    data(st, 1)
    st.restart("a1")
    data(st, 2)
    st.push("a1", 0, [row(0, 2)])
    st.push("a1", 1, [], stable=1)
    st.push("a1", 1, [row(1, 1)], stable=1)
    st.push("a1", 2, [], stable=2)
    assert st.contents(st.read("a1", 0)) == [(0, ["v2"]), (1, ["v1"])]


def test_data_is_an_orphan_when_an_append_that_began_much_later_is_ordered() -> None:
    st = stage()
    data(st, 1)
    st.sleep(10_001)
    content = batch("other", producer=8, sequence=0)
    for node in ("a1", "a2"):
        st.data(node, content)
    st.push("a1", 0, [Row(0, 1, 0, AppendId(8, 0, 0))])
    assert len(unordered(st, "a1")) == 2
    st.push("a1", 1, [], stable=1)
    assert len(unordered(st, "a1")) == 0
    assert st.nodes["a1"].machine.counters.orphans == 1


def test_ordering_an_append_costs_the_same_however_many_its_producer_has_under_way(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looks: list[AppendId] = []
    real = unordered_module._is_below

    def counted(id: AppendId, later: AppendId, lowest: int) -> bool:
        looks.append(id)
        return real(id, later, lowest)

    monkeypatch.setattr(unordered_module, "_is_below", counted)
    st = stage()
    for sequence in range(100):
        data(st, sequence)
    st.push("a1", 0, [row(nth, nth) for nth in range(100)])
    st.push("a1", 100, [], stable=100)
    assert unordered(st, "a1").held_bytes == 0
    assert len(looks) <= 2 * 100


@pytest.mark.parametrize(
    ("mode", "content", "code_"),
    [
        (Mode.M, batch("x"), "bad-request"),
        (Mode.ST, batch("x", producer=-1, sequence=-1), "bad-request"),
        (Mode.ST, b"nonsense", "corrupt-batch"),
    ],
)
def test_what_cannot_be_bound_is_refused(mode: Mode, content: bytes, code_: str) -> None:
    st = Stage(mode=mode)
    assert code(st, st.data("a1", content)) == code_


def test_before_its_configuration_comes_a_replica_asks_clients_to_try_again() -> None:
    st = Stage(mode=Mode.ST, arranged=False)
    assert code(st, st.data("a1", batch("x"))) == "shard-away"


def test_a_primary_that_was_deposed_forgets_the_rows_that_wait() -> None:
    st = stage()
    st.push("a1", 0, [row(0, 1)])
    st.take_over("a", "a2", "a1", "a2")
    assert st.nodes["a1"].machine.contents.map.end == 0
    st.push("a2", 0, [row(0, 1)])
    data(st, 1, epoch=2)
    assert st.pushed("a2").upto == 1


def test_other_records_under_a_request_id_are_refused_while_the_first_are_held() -> None:
    """Two programs may send both before any sequencer has the id."""
    st = stage()
    first, same, other = (
        encode([Record(value)], producer_id=9, producer_epoch=REQUEST_EPOCH, base_sequence=0, now=n)
        for n, value in enumerate((b"x", b"x", b"y"))
    )
    tokens = [st.data("a1", content) for content in (first, same, other)]
    assert [st.answer(token) for token in tokens[:2]] == [Stored(), Stored()]
    assert code(st, tokens[2]) == "request-reused"


def test_data_under_a_request_id_that_the_sequencers_have_forgotten_is_bound_anew() -> None:
    def content(value: bytes) -> bytes:
        records = [Record(value)]
        return encode(records, producer_id=9, producer_epoch=REQUEST_EPOCH, base_sequence=0, now=0)

    st = stage()
    id = AppendId(9, REQUEST_EPOCH, 0)
    for first, value in enumerate((b"monday", b"tuesday")):
        tokens = [st.data(node, content(value)) for node in ("a1", "a2")]
        assert [st.answer(token) for token in tokens] == [Stored(), Stored()]
        st.push("a1", first, [Row(first, 1, 0, id)])
        st.push("a1", first + 1, [], stable=first + 1)
        st.sleep(2_000)  # by then the backup knows as well
    assert st.contents(st.read("a1", 0)) == [(0, ["monday"]), (1, ["tuesday"])]
