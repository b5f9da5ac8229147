"""The metadata rebuilt from what a bucket holds."""

import msgspec
import pytest

from anabranch.core.bolt.metadata.leader import blank
from anabranch.core.bolt.metadata.rebuild import rebuild
from anabranch.core.bolt.protocol.commands import (
    Batch,
    Command,
    CommitObject,
    CreateLog,
    Entry,
    ForkLog,
    Promote,
    RegisterBroker,
    Row,
)
from anabranch.core.bolt.state import snapshot
from anabranch.core.bolt.state.state import State
from anabranch.core.limits import Limits
from anabranch.core.records.objects import object_id
from anabranch.core.types import Kind, LogId, ObjectId

ROOT, FORK = LogId(1), LogId(2)


def commit(sequence: int, log: LogId) -> CommitObject:
    rows = [Row(log, 0, [Batch(10, 3)])]
    return CommitObject("b", object_id(1, sequence), rows, sequence)


HISTORY: list[Command] = [
    RegisterBroker("b", "here:1"),
    CreateLog("orders"),
    commit(0, ROOT),
    ForkLog(ROOT, Kind.CONTINUOUS, promotable=True),
    commit(1, FORK),
    Promote(FORK),
    commit(2, ROOT),
    ForkLog(ROOT, Kind.SEVERED),
]
OBJECTS = [object_id(1, sequence) for sequence in range(3)]


@pytest.mark.parametrize("cut", range(len(HISTORY) + 1))
def test_the_state_comes_back_wherever_the_snapshot_was_taken(cut: int) -> None:
    state = blank("c", Limits())
    image: bytes | None = None
    groups: list[bytes] = []
    for turn, command in enumerate(HISTORY):
        if turn == cut:
            image, groups = snapshot.save(state.replica), []
        entry = Entry(1_000 + turn, b"%d" % turn, command)
        state.apply(entry)
        groups.append(msgspec.msgpack.encode([entry]))
    found = rebuild("c", Limits(), image, groups, OBJECTS)
    assert found.image == snapshot.save(state.replica)
    assert (found.logs, found.forks) == (1, 1)
    assert found.missing == []
    assert found.unnamed == []


def rebuilt(objects: list[ObjectId]) -> tuple[State, list[ObjectId], list[ObjectId]]:
    groups = [msgspec.msgpack.encode([Entry(9, b"", each)]) for each in HISTORY]
    found = rebuild("c", Limits(), None, groups, objects)
    state = blank("c", Limits())
    state.replica = snapshot.load(found.image, state.replica.limits)
    return state, found.missing, found.unnamed


def test_an_object_that_is_not_there_is_told() -> None:
    assert rebuilt(OBJECTS[:2])[1] == OBJECTS[2:]


def test_objects_behind_the_last_known_entry_are_told_and_their_lives_not_begun_again() -> None:
    late = [object_id(1, 7), object_id(5, 0)]
    state, missing, unnamed = rebuilt([*OBJECTS, *late])
    assert (missing, unnamed) == ([], late)
    state.apply(Entry(10, b"", RegisterBroker("b")))
    assert state.replica.brokers["b"].epoch == 6


def test_what_is_in_quarantine_returns_if_it_is_referred_to_and_keeps_its_life() -> None:
    groups = [msgspec.msgpack.encode([Entry(9, b"", each)]) for each in HISTORY]
    orphan = object_id(7, 0)
    found = rebuild("c", Limits(), None, groups, OBJECTS[:2], [OBJECTS[2], orphan])
    assert (found.missing, found.returning) == ([], [OBJECTS[2]])
    state = blank("c", Limits())
    assert snapshot.load(found.image, state.replica.limits).broker_epochs == 7
