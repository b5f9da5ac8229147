"""Views and attempts to start them."""

from anabranch.core.sequencing.protocol.ids import Member
from anabranch.core.sequencing.view import Ballot, View


def test_a_member_in_another_life_is_no_member() -> None:
    view = View(ballot=Ballot(4, 1), members=(Member("a", 1), Member("b", 5)), leader="b")
    assert view.number == 4
    assert view.nodes == ("a", "b")
    assert view.has("b", 5)
    assert not view.has("b", 6)


def test_attempts_are_compared_by_view_and_then_by_the_controllers_term() -> None:
    assert Ballot(2, 9) < Ballot(3, 1) < Ballot(3, 2)
