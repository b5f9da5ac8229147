"""Letters of a node that shows the token of peers, and lies about who it is or what it knows."""

import pytest
from msgspec.structs import replace
from tests.unit.core.sequencing.group import CONTROLLER, Group, batch_of, id_of

from anabranch.core.sequencing.protocol.letters import (
    AskState,
    Drop,
    Dropped,
    Prepare,
    Seal,
    SequencingLetter,
    Start,
    Strays,
    Void,
)
from anabranch.core.sequencing.state.ring import Entry
from anabranch.core.sequencing.view import Ballot, View

FAR = 1 << 39
NEXT = Ballot(2, 1)
BATCH = batch_of(id_of(7))


def running() -> Group:
    """`a` leads, and both members have one append in their rings."""
    group = Group("a", "b")
    group.run()
    group.change(Ballot(1, 1), "a", "b")
    group.append(1, id_of(0), "a", "b")
    group.run()
    return group


def drop(**changes: object) -> Drop:
    return replace(Drop(view=1, first=0, upto=1, ids=[id_of(0)], positions=[0]), **changes)


FOR_LEADER = [
    ("b", Dropped(1, 9)),
    ("stranger", Dropped(1, 0)),
    ("stranger", Strays(view=1, ordered=0, entries=[])),
    ("b", Strays(view=1, ordered=0, entries=[Entry(id_of(7), 1, 4, batch=b"none")])),
    ("b", Strays(view=1, ordered=0, entries=[Entry(id_of(7), 2, len(BATCH), batch=BATCH)])),
]
FOR_MEMBER = [
    ("stranger", Seal(NEXT, 1)),
    ("b", Seal(NEXT, 1)),
    ("stranger", Prepare(ballot=Ballot(FAR, 1), source="", base=0)),
    ("stranger", Start(View(ballot=Ballot(FAR, 1), members=(), leader="stranger"))),
    (CONTROLLER, Start(View(ballot=Ballot(FAR, 1), members=(), leader="stranger"))),
    ("stranger", drop()),
    ("stranger", Void(1, [id_of(0)])),
    ("a", drop(positions=[])),
    ("a", drop(positions=[1])),
    ("a", drop(first=1, upto=0, ids=[], positions=[])),
    ("a", drop(shards=["x", "y"])),
]


@pytest.mark.parametrize(
    ("to", "sender", "letter"),
    [("a", *each) for each in FOR_LEADER] + [("b", *each) for each in FOR_MEMBER],
)
def test_a_letter_of_somebody_else_or_that_cannot_be_changes_nothing(
    to: str, sender: str, letter: SequencingLetter
) -> None:
    group = running()
    replica = group[to].replica
    assert not replica.received(sender, letter)
    group.run()
    assert not replica.sealed
    assert [entry.id for entry in replica.ring] == [id_of(0)]
    group["a"].order(group["a"].take())
    group.run()
    assert group["a"].stable == 1
    assert group.change(NEXT, "a", "b", source="a", sealed=("a", "b")).base == 1


def test_a_start_that_differs_from_what_was_prepared_is_dropped() -> None:
    group = running()
    view = group.prepared(NEXT, "a", "b", source="a", sealed=("a", "b"))
    assert not group["b"].replica.received(CONTROLLER, Start(replace(view, base=5)))
    group.start(view, "a", "b")
    group.run()
    assert group["b"].replica.view == view


def test_a_controller_beside_a_sequencer_that_was_added_is_heard() -> None:
    group = running()
    replica = group["b"].replica
    assert not replica.received("c/controller", Seal(NEXT, 1))
    replica.configured(2, ("a", "b", "c"))
    assert not replica.received("d/controller", Seal(NEXT, 1))
    assert not replica.received("d", AskState(NEXT, 0))
    assert replica.received("c", AskState(NEXT, 0))
    assert replica.received("c/controller", Seal(NEXT, 1))
    assert replica.sealed
