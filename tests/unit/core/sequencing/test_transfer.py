"""How a sealed member's state comes to the next view: whole, unchanged, and on the disk."""

import pytest
from tests.unit.core.sequencing.group import CONTROLLER, Group, codes, id_of

from anabranch.core.limits import Limits
from anabranch.core.machine import Send
from anabranch.core.sequencing import member
from anabranch.core.sequencing.protocol.letters import (
    AskState,
    Prepare,
    Prepared,
    Seal,
    Sealed,
    State,
)
from anabranch.core.sequencing.protocol.messages import Taken
from anabranch.core.sequencing.view import Ballot

SECOND = Ballot(2, 1)


@pytest.fixture
def group() -> Group:
    group = Group("a", "b", "c")
    group.run()
    group.change(Ballot(1, 1), "a", "b")
    for sequence in range(4):
        group.append(1, id_of(sequence), "a", "b")
    group.run()
    return group


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(member, "PART_BYTES", 100)


def held(group: Group, name: str) -> list[int]:
    return [entry.id.sequence for entry in group[name].replica.ring]


def test_nothing_is_said_of_a_seal_or_a_state_before_it_is_on_the_disk(group: Group) -> None:
    group.to_all(Seal(SECOND, 1), "b")
    group["b"].receive("c", AskState(SECOND, 0))
    assert group.letters_of(Sealed) + group.letters_of(State) == []
    group["b"].write()
    assert len(group.letters_of(Sealed)) == len(group.letters_of(State)) == 1
    group.to_all(Prepare(ballot=SECOND, source="b"), "c")
    group.deliver_all(AskState)
    group.deliver_all(State)
    assert group.letters_of(Prepared) == []
    group["c"].write()
    assert [letter.base for letter in group.letters_of(Prepared)] == [0]


@pytest.mark.usefixtures("small_parts")
def test_a_state_travels_in_parts_some_of_which_are_lost_or_repeated(group: Group) -> None:
    group.to_all(Seal(SECOND, 1), "b")
    group.run()
    group.to_all(Prepare(ballot=SECOND, source="b"), "c")
    for turn in range(40):
        group.deliver_all(AskState)
        parts = group.letters_of(State)
        group.lose(State)
        for part in parts if turn % 3 else []:
            group["c"].receive("b", part)
            group["c"].receive("b", part)
        group.wait(100)
    group.run()
    prepared = [letter for letter in group.heard(Prepared) if isinstance(letter, Prepared)]
    assert {letter.node for letter in prepared} == {"c"}
    assert len([entry for entry in group["c"].entries if b"part" in entry]) > 3
    group.change(Ballot(2, 1, 1), "c", source="b")
    assert held(group, "c") == [0, 1, 2, 3]
    group.restart("c")
    group.run()
    assert held(group, "c") == [0, 1, 2, 3]
    assert group["c"].replica.begun == 2


def test_members_that_only_now_dial_one_another_copy_a_state_without_a_pause(group: Group) -> None:
    group.to_all(Seal(SECOND, 1), "b")
    group.run()
    group.to_all(Prepare(ballot=SECOND, source="b"), "c")
    group.lose(AskState)
    group["c"].link("b")
    group.deliver_all(AskState)
    group.lose(State)
    group["b"].link("c")
    group.deliver_all(State)
    group["c"].write()
    assert [letter.node for letter in group.letters_of(Prepared)] == ["c"]


def test_a_node_that_copies_nothing_is_sent_no_state(group: Group) -> None:
    group.to_all(Seal(SECOND, 1), "b")
    group.run()
    group["b"].link("c")
    group["b"].link("a")
    assert group.letters_of(State) == []


@pytest.mark.usefixtures("small_parts")
def test_a_source_that_cut_its_state_otherwise_after_a_restart_is_asked_from_the_start(
    group: Group,
) -> None:
    group.to_all(Seal(SECOND, 1), "b")
    group.run()
    group.to_all(Prepare(ballot=SECOND, source="b"), "c")
    group.deliver_all(AskState)
    (part,) = group.letters_of(State)
    group.lose(State)
    other = State(ballot=SECOND, part=0, parts=part.parts, content=b"x", digest=part.digest ^ 1)
    group["c"].receive("b", other)
    group.run()
    assert group.heard(Prepared)
    group.change(Ballot(2, 1, 1), "c", source="b")
    assert held(group, "c") == [0, 1, 2, 3]


def test_a_member_that_is_not_sealed_gives_its_state_to_nobody(group: Group) -> None:
    group["b"].receive("c", AskState(SECOND, 0))
    assert group.letters_of(State) == []


def test_a_source_is_prepared_as_soon_as_it_is_sealed(group: Group) -> None:
    prepare = Prepare(ballot=SECOND, source="b")
    group.to_all(prepare, "b")
    group.to_all(Seal(SECOND, 1), "b")
    group.run()
    assert group.heard(Prepared) == []
    group.to_all(prepare, "b")
    group.run()
    assert len(group.heard(Prepared)) == 1


def test_a_later_attempt_replaces_an_earlier_one_and_never_the_other_way(group: Group) -> None:
    group["a"].order(group["a"].take(1))
    group.run()
    group.append(1, id_of(4), "b")
    group.to_all(Seal(SECOND, 1), "a", "b")
    group.run()
    for ballot, source in [(Ballot(2, 1, 1), "b"), (SECOND, "a"), (Ballot(2, 1, 1), "a")]:
        group.heard(Prepared)
        group.to_all(Prepare(ballot=ballot, source=source), "c")
        group.run()
    assert [letter.ballot for letter in group.letters_of(Prepared)] == []
    view = group.prepared(Ballot(2, 1, 1), "c", source="b")
    group.start(view, "c")
    assert held(group, "c") == [1, 2, 3, 4]


def test_settled_appends_are_known_and_in_no_ring(group: Group) -> None:
    group.to_all(Seal(SECOND, 1), "b")
    group.run()
    settled = ((id_of(0), 10), (id_of(9, producer=5), 11))
    for name in "bc":
        group.to_all(Prepare(ballot=SECOND, source="b", base=12, settled=settled), name)
    group.run()
    view = group.prepared(SECOND, "b", "c", source="b")
    assert view.base == 12
    group.start(view, "b", "c")
    group.run()
    assert held(group, "b") == held(group, "c") == [1, 2, 3]
    tokens = group.append(2, id_of(9, producer=5), "b") + group.append(2, id_of(0), "c")
    group.run()
    assert group.answered(tokens) == [Taken(), Taken()]


def test_a_node_that_lost_its_journal_is_no_member(group: Group) -> None:
    view = group.prepared(SECOND, "b", "c", source="b", sealed=("b",))
    group["c"].crash()
    group["c"].wipe()
    group.now += 1
    group["c"].start(group.now)
    group.to_all(Prepare(ballot=SECOND, source="b"), "c")
    group.run()
    group.start(view, "b", "c")
    group.run()
    assert group["c"].replica.view is None
    assert codes(group.answered(group.append(2, id_of(7), "c"))) == ["unavailable"]


def test_a_member_that_is_left_out_ends_its_view(group: Group) -> None:
    view = group.prepared(SECOND, "b", "c", source="b", sealed=("b",))
    group.deliver(CONTROLLER, Send("a", group.start_of(view)))
    assert group["a"].replica.sealed
    assert group["a"].told[-1] is None
    assert codes(group.answered(group.append(1, id_of(5), "a"))) == ["stale-view"]


def test_the_ring_of_a_lost_view_is_empty_and_begins_where_it_is_told() -> None:
    group = Group("a", "b", fsync=False, limits=Limits())
    group.run()
    group.change(Ballot(1, 1), "a", "b")
    group.append(1, id_of(0), "a", "b")
    for name in "ab":
        group.restart(name)
    group.to_all(Prepare(ballot=SECOND, source="", base=5), "a", "b")
    group.run()
    assert [letter.base for letter in group.heard(Prepared) if isinstance(letter, Prepared)] == [
        5,
        5,
    ]
