"""What fsck says of a state that can't have come from a journal that replays."""

from collections.abc import Callable

import pytest

from anabranch.core.bolt.logs.forest import Log
from anabranch.core.bolt.protocol.commands import (
    Batch,
    CommitObject,
    CreateLog,
    Entry,
    ForkLog,
    RegisterBroker,
    Row,
)
from anabranch.core.bolt.state.audit import Fault, holdings, replica_faults
from anabranch.core.bolt.state.state import State
from anabranch.core.limits import Limits
from anabranch.core.records.objects import object_id
from anabranch.core.types import Kind, LogId


@pytest.fixture
def state() -> State:
    """`orders` with 3 extents of 10 in 3 objects, the last shared with its fork."""
    state = State("test", Limits())
    orders, fork = LogId(1), LogId(2)
    commands = [
        RegisterBroker("b"),
        CreateLog("orders"),
        CommitObject("b", object_id(1, 0), [Row(orders, 0, [Batch(100, 10)])]),
        CommitObject("b", object_id(1, 1), [Row(orders, 0, [Batch(100, 10)])]),
        ForkLog(orders, Kind.CONTINUOUS, "fork"),
        CommitObject(
            "b",
            object_id(1, 2),
            [Row(orders, 0, [Batch(100, 10)]), Row(fork, 100, [Batch(50, 5)])],
        ),
    ]
    for at, command in enumerate(commands):
        state.apply(Entry(at, b"", command))
    return state


def orders(state: State) -> Log:
    return state.replica.forest.names["orders"]


def test_a_state_that_was_replayed_has_no_fault(state: State) -> None:
    assert replica_faults(state.replica) == []


def test_every_object_comes_once_with_all_that_refer_to_it(state: State) -> None:
    held = dict(holdings(state.replica))
    assert list(held) == [object_id(1, 0), object_id(1, 1), object_id(1, 2)]
    assert [(each.log, each.first, each.count) for each in held[object_id(1, 2)]] == [
        ("orders", 20, 10),
        ("orders--fork", 30, 5),
    ]


def drop_last(state: State) -> None:
    index = orders(state).index
    for column in (index.first, index.upto, index.object, index.offset, index.length, index.at):
        column.pop()


def overlap(state: State) -> None:
    orders(state).index.first[1] = 5


def miscount(state: State) -> None:
    state.replica.references.counts.clear()


def throw_away(state: State) -> None:
    state.replica.references.garbage[object_id(1, 0)] = 7


@pytest.mark.parametrize("damage", [drop_last, overlap, miscount, throw_away])
def test_damage_to_a_state_is_seen(state: State, damage: Callable[[State], None]) -> None:
    damage(state)
    faults = replica_faults(state.replica)
    assert faults != []
    assert all(isinstance(fault, Fault) and fault.code == "broken-rule" for fault in faults)
