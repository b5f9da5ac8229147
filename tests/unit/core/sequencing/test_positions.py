"""How clients wait for positions: in any number, and leave in any order."""

from tests.unit.core.sequencing.group import LIMITS, Group, codes, id_of

from anabranch.core.askers import REQUEST_BITS, seat_number
from anabranch.core.limits import Limits
from anabranch.core.machine import Reply
from anabranch.core.sequencing.positions import Positions
from anabranch.core.sequencing.protocol.messages import FindPosition, Found
from anabranch.core.sequencing.view import Ballot

MANY = 1_000


class Watched(int):
    """A token that counts what it is compared with."""

    compared = 0

    def __eq__(self, other: object) -> bool:
        Watched.compared += 1
        return int(self) == other

    __hash__ = int.__hash__


def leader(limits: Limits = LIMITS) -> Group:
    group = Group("a", "b", limits=limits)
    group.run()
    group.change(Ballot(1, 1), "a", "b")
    return group


def positions_of(group: Group) -> Positions:
    return group["a"].replica._positions  # pyright: ignore[reportPrivateUsage]


def test_leaving_costs_the_same_however_many_ask_for_the_same_append() -> None:
    found = positions_of(leader())
    tokens = [Watched(token) for token in range(MANY)]
    for token in tokens:
        found.find(token, FindPosition(id_of(0)), 0)
    Watched.compared = 0
    for token in reversed(tokens):
        found.drop(token)
    assert len(found) == 0
    assert Watched.compared <= 10 * MANY


def test_those_who_ask_and_leave_take_no_room_while_an_append_is_not_stable() -> None:
    group = leader()
    found, effects = positions_of(group), group["a"].replica._effects
    group.append(1, id_of(0), "a", "b")
    group.run()
    group["a"].order(group["a"].take())
    for token in range(MANY):
        found.find(token, FindPosition(id_of(0)), 0)
        found.drop(token)
    assert len(found._places) == 1  # pyright: ignore[reportPrivateUsage]
    found.find(MANY, FindPosition(id_of(0)), 0)
    effects.clear()
    found.stable(1)
    assert effects == [Reply(MANY, Found(0))]
    assert len(found) == 0


def test_one_client_leaves_places_for_the_questions_of_others() -> None:
    """With questions for appends that never come it would otherwise keep everybody waiting."""
    group = leader(Limits(waits_max=8))
    bad, good = (seat_number(0, seat) << REQUEST_BITS for seat in (1, 2))
    asked = [bad | request for request in range(8)]
    for n, token in enumerate(asked, 1):
        group["a"].request(token, FindPosition(id_of(n)))
    assert codes(group.answered(asked)) == ["overloaded"] * 4
    group["a"].request(good, FindPosition(id_of(0)))
    group.append(1, id_of(0), "a", "b")
    group.run()
    group["a"].order(group["a"].take())
    group.run()
    assert group.answered([good]) == [Found(0)]
    group["a"].replica.gone(asked[0])
    group["a"].request(bad | 8, FindPosition(id_of(1)))
    assert not group.answered([bad | 8]), "a place that was given back is free again"
