"""Appends that only some members have: the leader takes them, or they leave the others' rings."""

from tests.unit.core.sequencing.group import Group, batch_of, id_of

from anabranch.core.sequencing.protocol.letters import Strays, Void
from anabranch.core.sequencing.protocol.messages import Append, Taken
from anabranch.core.sequencing.view import Ballot

LONG = 2_000


def group_of(*names: str) -> Group:
    group = Group(*names)
    group.run()
    group.change(Ballot(1, 1), *names)
    return group


def held(group: Group, name: str) -> list[int]:
    return [entry.id.sequence for entry in group[name].replica.ring]


def wait(group: Group) -> None:
    for _ in range(2):
        group.wait(LONG)
    group.run()


def test_the_leader_takes_what_another_member_has_for_long() -> None:
    group = group_of("a", "b", "c")
    group.append(1, id_of(0), "b")
    group.append(1, id_of(1), "a", "b", "c")
    group.run()
    group.wait(LONG)
    group.run()
    assert held(group, "a") == [1]
    wait(group)
    assert held(group, "a") == [1, 0]
    group["a"].order(group["a"].take())
    group.run()
    assert held(group, "a") == held(group, "b") == held(group, "c") == []
    tokens = group.append(1, id_of(0), "a", "b", "c")
    group.run()
    assert group.answered(tokens) == [Taken()] * 3
    assert group["a"].replica.tail == 2


def test_what_the_leader_has_itself_stays_where_it_is() -> None:
    group = group_of("a", "b")
    group.append(1, id_of(0), "a", "b")
    group.run()
    wait(group)
    assert held(group, "a") == held(group, "b") == [0]
    assert group["a"].take() == [id_of(0)]


def test_an_append_of_a_producer_that_went_on_without_it_leaves_the_ring() -> None:
    group = group_of("a", "b")
    group.append(1, id_of(0), "b")
    group["b"].request(50, Append(1, 0, batch_of(id_of(0, epoch=1))))
    group["a"].request(51, Append(1, 0, batch_of(id_of(0, epoch=1))))
    group.run()
    wait(group)
    assert [entry.id.epoch for entry in group["b"].replica.ring] == [1]
    group.restart("b")
    assert [entry.id.epoch for entry in group["b"].replica.ring] == [1]


def test_an_append_that_was_void_is_taken_anew_in_the_next_view() -> None:
    """Another client goes on under its producer's id, which readers see: the leader refuses it."""
    group = group_of("a", "b")
    group.append(1, id_of(3), "a")
    group.append(1, id_of(5), "a", lowest=5)
    group.append(1, id_of(0), "b")
    group.run()
    wait(group)
    assert held(group, "b") == []
    group.change(Ballot(2, 1), "b", "a", source="b", sealed=("b",))
    tokens = group.append(2, id_of(0), "a", "b")
    group.run()
    assert group.answered(tokens) == [Taken(), Taken()]
    assert 0 in held(group, "a")
    assert 0 in held(group, "b")


def test_nothing_is_void_while_drops_are_under_way() -> None:
    """What the leader knows and doesn't hold may be ordered: the other member may be a source."""
    group = group_of("a", "b")
    group.append(1, id_of(0), "a", "b")
    group.run()
    group["a"].order(group["a"].take())
    group["a"].request(50, Append(1, 1, batch_of(id_of(1))))
    group["a"].write()
    group.letters = []
    for _ in range(3):
        group.wait(LONG)
        group.deliver_all(Strays)
        assert group.letters_of(Void) == []
        group.letters = []
    assert held(group, "b") == [0]


def test_strays_of_which_there_are_many_follow_one_another_without_a_pause() -> None:
    group = group_of("a", "b")
    many = 2_500
    for sequence in range(many):
        group.append(1, id_of(sequence), "b")
    group.run()
    wait(group)
    for _ in range(3):
        group["a"].order(group["a"].take())
        group.run()
    assert held(group, "b") == []
    assert group["a"].replica.tail == many
