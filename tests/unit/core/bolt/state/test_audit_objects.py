"""What fsck says of objects: nothing of those that are as they were written, and every damage."""

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.unit.core.bolt.state.stored import CLUSTER, Stored, batch

from anabranch.core.bolt.protocol.commands import DeleteLog, ForkLog, Trim
from anabranch.core.bolt.state.audit import Fault, Holding, holdings, inspect, loss
from anabranch.core.types import Kind, LogId, ObjectId


def faults(stored: Stored, *, cluster: str = CLUSTER) -> list[Fault]:
    """Of all objects that an extent names."""
    return [fault for each in found(stored, cluster) for fault in each]


def found(stored: Stored, cluster: str) -> Iterator[list[Fault]]:
    for object, held in holdings(stored.state.replica):
        content = stored.objects[object]
        yield inspect(stored.name(object), cluster, content, held).faults


@pytest.fixture
def stored() -> Stored:
    """Two logs in three objects, and a fork of the first."""
    stored = Stored()
    one, two = stored.begin("one", "two")
    stored.commit({one: [batch(b"1"), batch(b"2", b"3")], two: [batch(b"a")]})
    stored.commit({two: [batch(b"b", b"c")]})
    stored.apply(ForkLog(one, Kind.CONTINUOUS, "fork"))
    stored.commit({LogId(3): [batch(b"own")], one: [batch(b"4")]})
    return stored


def test_what_was_written_and_committed_has_no_fault(stored: Stored) -> None:
    assert faults(stored) == []
    seen = dict(holdings(stored.state.replica))
    for object, content in stored.objects.items():
        result = inspect(stored.name(object), CLUSTER, content, seen[object])
        assert (result.batches, result.records) == {0: (3, 4), 1: (1, 2), 2: (2, 2)}[
            int(object) & 3
        ]


plans = st.lists(
    st.lists(st.tuples(st.integers(0, 2), st.integers(1, 3)), min_size=1, max_size=3),
    min_size=1,
    max_size=5,
)


@given(plans, st.data())
def test_neither_trims_nor_severed_forks_nor_deletions_make_a_fault(
    plan: list[list[tuple[int, int]]], data: st.DataObject
) -> None:
    """A severed fork outlives its parent with a part of an extent."""
    stored = Stored()
    logs = stored.begin("a", "b", "c")
    for rows in plan:
        batches: dict[LogId, list[bytes]] = {}
        for log, count in rows:
            batches.setdefault(logs[log], []).append(batch(*[b"v"] * count))
        stored.commit(batches)
    forest = stored.state.replica.forest
    for log in logs:
        tail = forest.tail(forest.logs[log])
        if tail:
            stored.apply(ForkLog(log, Kind.SEVERED, past=data.draw(st.integers(0, tail - 1))))
            stored.apply(Trim(log, data.draw(st.integers(0, tail))))
    stored.apply(DeleteLog(logs[0], force=True))
    assert faults(stored) == []


@given(st.data())
def test_a_flipped_bit_is_found_wherever_it_is(data: st.DataObject) -> None:
    stored = Stored()
    (log,) = stored.begin("one")
    object = stored.commit({log: [batch(b"1"), batch(b"2", b"3")]})
    content = bytearray(stored.objects[object])
    place = data.draw(st.integers(0, len(content) - 1))
    content[place] ^= 1 << data.draw(st.integers(0, 7))
    stored.objects[object] = bytes(content)
    seen = faults(stored)
    # Kafka's base offset and leader epoch are no part of a batch's checksum, and of no use here.
    unused = {*range(8), *range(12, 16)}
    if not any(place - start in unused for start in (0, len(batch(b"1")))):
        assert seen, f"byte {place}"
        assert all(fault.where and fault.reason for fault in seen)


def test_other_sound_batches_in_an_extents_place_are_told(stored: Stored) -> None:
    """As from another journal's back-up: every checksum and every count is right."""
    object = ObjectId(min(stored.objects))
    written = stored.objects[object]
    later = stored.write({LogId(1): [batch(b"7"), batch(b"8", b"9")], LogId(2): [batch(b"a")]})
    stored.objects[object] = stored.objects.pop(later)
    assert len(stored.objects[object]) == len(written)
    (fault,) = faults(stored)
    assert (fault.code, fault.where) == ("wrong-sum", "one 0..2")
    assert stored.name(object) in fault.reason


@pytest.mark.parametrize("kept", [0, 1, 50, -1])
def test_an_object_that_was_cut_short_says_what_is_lost(stored: Stored, kept: int) -> None:
    object = ObjectId(min(stored.objects))
    stored.objects[object] = stored.objects[object][:kept]
    seen = faults(stored)
    assert "corrupt-object" in {fault.code for fault in seen}
    lost = [fault.where for fault in seen if fault.code == "lost-records"]
    assert lost == ([] if kept == -1 else ["one 0..2", "two 0..0"])


def test_reading_goes_on_behind_what_is_lost(stored: Stored) -> None:
    object = ObjectId(max(stored.objects))
    stored.objects[object] = b""
    reasons = {fault.where: fault.reason for fault in faults(stored)}
    assert "reading goes on at 4" in reasons["one 3..3"]


def test_another_clusters_object_is_told(stored: Stored) -> None:
    codes = {(fault.code, fault.reason) for fault in faults(stored, cluster="lake")}
    assert codes == {("wrong-cluster", "it was written for river")}


def test_an_extent_that_names_more_or_fewer_records_than_there_are_is_told(stored: Stored) -> None:
    ((object, held), *_) = holdings(stored.state.replica)
    content, name = stored.objects[object], stored.name(object)
    for change in (-1, 1):
        wrong = [replace(held[0], count=held[0].count + change), *held[1:]]
        (fault,) = inspect(name, CLUSTER, content, wrong).faults
        assert fault.code == "lost-records"
        assert f"instead of {held[0].count + change}" in fault.reason


def test_a_part_of_an_extent_is_enough_where_a_fork_was_cut_off(stored: Stored) -> None:
    ((object, held), *_) = holdings(stored.state.replica)
    content, name = stored.objects[object], stored.name(object)
    part = replace(held[0], count=held[0].count - 1, cut=True)
    assert inspect(name, CLUSTER, content, [part]).faults == []
    skipping = replace(part, skip=1)
    assert inspect(name, CLUSTER, content, [skipping]).faults == []
    assert inspect(name, CLUSTER, content, [replace(skipping, count=3)]).faults != []


def test_an_extent_that_begins_within_a_batch_can_t_be_read(stored: Stored) -> None:
    ((object, held), *_) = holdings(stored.state.replica)
    content, name = stored.objects[object], stored.name(object)
    shifted = replace(held[0], offset=held[0].offset + 1)
    (fault,) = inspect(name, CLUSTER, content, [shifted]).faults
    assert "can't be read as its batches" in fault.reason


@pytest.mark.parametrize(
    ("quarantined", "said"), [(False, "not in the store"), (True, "brings it back")]
)
def test_what_a_missing_object_takes_with_it_is_named(quarantined: bool, said: str) -> None:
    held = [Holding("one", 5, 3, 0, 10, False), Holding("two", 0, 1, 10, 5, False)]
    told = list(loss("it", held, quarantined))
    assert [fault.where for fault in told] == ["one 5..7", "two 0..0"]
    assert all(fault.code == "object-missing" and said in fault.reason for fault in told)
    assert "reading goes on at 8" in told[0].reason
