"""Records that only objects know of: each comes back once, in its log's order, and stays told
apart from what the journal knows.
"""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.core.bolt.state.stored import CLUSTER, Stored, batch, values

from anabranch.core.bolt.protocol.commands import CreateLog, Entry, ForkLog, Squash
from anabranch.core.bolt.state.invariants import broken
from anabranch.core.bolt.state.salvage import Salvage, read
from anabranch.core.bolt.state.state import State
from anabranch.core.errors import CorruptObject
from anabranch.core.limits import Limits
from anabranch.core.records.record import decode
from anabranch.core.types import Kind, LogId, ObjectId


def empty() -> State:
    return State(CLUSTER, Limits())


def recovered(stored: Stored, state: State, known: Sequence[ObjectId] = ()) -> Salvage:
    """All objects that aren't known are taken, in the order of their names."""
    salvage = Salvage(state)
    for object in known:
        salvage.know(read(stored.objects[object], "it").logs)
    for object, content in stored.objects.items():
        if object not in known:
            salvage.add(object, read(content, "it").logs, 1)
    assert broken(state.replica) == []
    return salvage


writes = st.lists(
    st.lists(st.tuples(st.integers(0, 2), st.integers(1, 3)), min_size=1, max_size=4),
    min_size=1,
    max_size=6,
)


@given(writes)
def test_what_objects_hold_comes_back_in_the_order_in_which_it_was_written(
    plan: list[list[tuple[int, int]]],
) -> None:
    stored, wanted, count = Stored(), dict[int, list[bytes | None]](), 0
    for rows in plan:
        batches: dict[LogId, list[bytes]] = {}
        for log, records in rows:
            made = [b"%d" % (count + number) for number in range(records)]
            count += records
            batches.setdefault(LogId(log + 1), []).append(batch(*made))
            wanted.setdefault(log + 1, []).extend(made)
        stored.write(batches)
    state = empty()
    salvage = recovered(stored, state)
    assert salvage.records == count
    assert salvage.repeated == 0
    assert sorted(salvage.names) == sorted(f"recovered-{log}" for log in wanted)
    for log, there in wanted.items():
        assert values(state, f"recovered-{log}", stored.objects) == there


@given(
    sends=st.lists(st.tuples(st.integers(0, 1), st.integers(0, 4)), min_size=1, max_size=15),
    known=st.integers(0, 3),
)
def test_what_a_producer_has_sent_twice_comes_back_once(
    sends: list[tuple[int, int]], known: int
) -> None:
    """Whether the journal knows the first copy, or an orphan of a broken connection holds it."""
    stored, known = Stored(), min(known, len(sends))
    (log,) = stored.begin("orders")
    batches = {
        (producer, at): batch(b"%d %d" % (producer, at), producer=producer, sequence=at)
        for producer in range(2)
        for at in range(5)
    }
    objects = [stored.write({log: [batches[send]]}) for send in sends]
    before = objects[:known]
    salvage = Salvage(stored.state)
    placed = [values_of(batches[send]) for send in dict.fromkeys(sends)]
    for object in before:
        salvage.know(read(stored.objects[object], "it").logs)
    fresh = [each for each in dict.fromkeys(sends) if each not in sends[:known]]
    for object in objects[known:]:
        salvage.add(object, read(stored.objects[object], "it").logs, 9)
    assert values(stored.state, "orders", stored.objects) == [values_of(batches[e]) for e in fresh]
    assert salvage.records + len(set(sends[:known])) == len(placed)
    assert salvage.repeated == len(sends) - known - len(fresh)
    assert broken(stored.state.replica) == []


def values_of(one: bytes) -> bytes | None:
    (record,) = decode(one)
    return record.value


def test_a_log_that_is_made_is_not_taken_for_one_whose_id_it_got() -> None:
    """An older journal gives ids out again that logs had when the objects were written."""
    stored = Stored()
    (orders,) = stored.begin("orders")
    known = stored.commit({orders: [batch(b"1")]})
    stored.write({LogId(3): [batch(b"of 3")]})
    stored.write({LogId(2): [batch(b"of 2")], LogId(3): [batch(b"of 3 too")]})
    salvage = recovered(stored, stored.state, [known])
    assert salvage.names == ["recovered-3", "recovered-2"]
    assert values(stored.state, "recovered-3", stored.objects) == [b"of 3", b"of 3 too"]
    assert values(stored.state, "recovered-2", stored.objects) == [b"of 2"]


def test_records_of_nobody_that_look_alike_are_all_kept() -> None:
    """Two programs may append the same bytes; only a row of several known ones is a copy."""
    stored = Stored()
    same = batch(b"tick")
    for _ in range(3):
        stored.write({LogId(1): [same]})
    state = empty()
    salvage = recovered(stored, state)
    assert values(state, "recovered-1", stored.objects) == [b"tick"] * 3
    assert salvage.repeated == 0


def test_what_compaction_has_copied_comes_back_once() -> None:
    stored = Stored()
    batches = [batch(b"%d" % number) for number in range(3)]
    for each in batches:
        stored.write({LogId(1): [each]})
    stored.write({LogId(1): batches})
    state = empty()
    salvage = recovered(stored, state)
    assert values(state, "recovered-1", stored.objects) == [b"0", b"1", b"2"]
    assert salvage.repeated == 3


def test_records_go_to_the_log_that_the_journal_knows() -> None:
    stored = Stored()
    orders, other = stored.begin("orders", "other")
    known = stored.commit({orders: [batch(b"1")], other: [batch(b"a")]})
    stored.write({orders: [batch(b"2"), batch(b"3")], other: [batch(b"b")]})
    salvage = recovered(stored, stored.state, [known])
    assert values(stored.state, "orders", stored.objects) == [b"1", b"2", b"3"]
    assert values(stored.state, "other", stored.objects) == [b"a", b"b"]
    assert salvage.names == []


def test_records_of_a_log_that_is_gone_or_takes_none_get_one_of_their_own() -> None:
    stored = Stored()
    orders, gone = stored.begin("orders", "gone")
    stored.commit({orders: [batch(b"1")]})
    stored.apply(ForkLog(orders, Kind.CONTINUOUS, "held"))
    held = stored.state.replica.forest.names["orders--held"].id
    stored.apply(ForkLog(orders, Kind.CONTINUOUS, "undecided", promotable=True))
    fork = stored.apply(ForkLog(gone, Kind.CONTINUOUS, "squashed"))
    stored.apply(Squash(fork.id))  # pyright: ignore[reportAttributeAccessIssue, reportArgumentType]
    squashed = LogId(held + 2)
    object = stored.write({held: [batch(b"2")], squashed: [batch(b"3")]})
    salvage = Salvage(stored.state)
    salvage.add(object, read(stored.objects[object], "it").logs, 9)
    assert salvage.names == [f"recovered-{held}", f"recovered-{squashed}"]
    for log, value in ((held, b"2"), (squashed, b"3")):
        assert values(stored.state, f"recovered-{log}", stored.objects) == [value]
    assert broken(stored.state.replica) == []


def test_another_journals_records_are_kept_apart_from_this_ones() -> None:
    """The same id may be another log there."""
    stored = Stored()
    (orders,) = stored.begin("orders")
    known = stored.commit({orders: [batch(b"1")]})
    theirs = stored.write({orders: [batch(b"2")]})
    salvage = Salvage(stored.state)
    salvage.know(read(stored.objects[known], "it").logs)
    salvage.add(theirs, read(stored.objects[theirs], "it").logs, 9, apart=True)
    assert salvage.apart == ["recovered-1"]
    assert salvage.names == []
    assert values(stored.state, "orders", stored.objects) == [b"1"]
    assert values(stored.state, "recovered-1", stored.objects) == [b"2"]


def test_a_name_that_an_earlier_recovery_took_is_left_to_it() -> None:
    stored = Stored()
    stored.begin("recovered-7", "recovered-7-2")
    object = stored.write({LogId(7): [batch(b"1")]})
    salvage = Salvage(stored.state)
    salvage.add(object, read(stored.objects[object], "it").logs, 9)
    assert salvage.names == ["recovered-7-3"]


def test_what_was_done_is_replayed_from_the_entries_that_are_journaled() -> None:
    stored = Stored()
    stored.write({LogId(1): [batch(b"1")], LogId(2): [batch(b"2", b"3")]})
    stored.write({LogId(2): [batch(b"4")]})
    state, replayed = empty(), empty()
    salvage, entries = Salvage(state), list[Entry]()
    for object, content in stored.objects.items():
        entries += salvage.add(object, read(content, "it").logs, 5)
    for entry in entries:
        replayed.apply(entry)
    for log in ("recovered-1", "recovered-2"):
        assert values(replayed, log, stored.objects) == values(state, log, stored.objects)
    assert {entry.at for entry in entries} == {5}
    assert isinstance(entries[1].command, CreateLog)
    assert entries[1].command.by == "anabranch recover"


def test_an_object_with_nothing_new_in_it_changes_nothing() -> None:
    stored = Stored()
    (orders,) = stored.begin("orders")
    sent = batch(b"1", producer=5, sequence=0)
    known = stored.commit({orders: [sent]})
    copy = stored.write({orders: [sent]})
    salvage = Salvage(stored.state)
    salvage.know(read(stored.objects[known], "it").logs)
    assert salvage.add(copy, read(stored.objects[copy], "it").logs, 9) == []
    assert (salvage.records, salvage.repeated) == (0, 1)


@given(st.data())
def test_a_flipped_bit_costs_its_batch_and_no_other(data: st.DataObject) -> None:
    stored = Stored()
    batches = [batch(b"%d" % number, bytes(20)) for number in range(4)]
    object = stored.write({LogId(1): batches[:2], LogId(2): batches[2:]})
    content = bytearray(stored.objects[object])
    body = sum(map(len, batches))
    place = data.draw(st.integers(0, body - 1))
    content[place] ^= 1 << data.draw(st.integers(0, 7))
    found = read(content, "it")
    kept = [header.crc for log in found.logs for run in log.runs for _, header in run]
    intact = read(stored.objects[object], "it")
    whole = [header.crc for log in intact.logs for run in log.runs for _, header in run]
    assert set(kept) <= set(whole)
    in_length = place % len(batches[0]) in range(8, 12)
    # A length that is wrong hides what follows it in the same log, and nothing of another log.
    assert len(kept) >= (2 if in_length else 3)
    if len(kept) < 4:
        assert found.damaged


def test_who_owns_the_bytes_of_a_torn_object_nobody_can_say() -> None:
    stored = Stored()
    object = stored.write({LogId(1): [batch(b"1")]})
    content = stored.objects[object]
    for end in (0, 5, len(content) - 1):
        with pytest.raises(CorruptObject):
            read(content[:end], "it")
