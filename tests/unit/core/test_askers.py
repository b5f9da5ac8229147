"""Whose share a request takes, by its token."""

from anabranch.core.askers import REQUEST_BITS, asker_of, principal_of, seat_number
from anabranch.core.budget import EVERYBODY


def token(principal: int, seat: int, request: int) -> int:
    return (seat_number(principal, seat) << REQUEST_BITS) | request


def test_a_principal_has_one_share_over_all_its_connections() -> None:
    assert asker_of(token(3, 1, 7)) == asker_of(token(3, 2, 9)) == 3
    assert asker_of(token(4, 3, 7)) != asker_of(token(3, 1, 7))
    assert principal_of(token(3, 2, 9)) == 3


def test_where_clients_are_not_told_apart_each_connection_has_a_share() -> None:
    assert asker_of(token(0, 1, 7)) == asker_of(token(0, 1, 8))
    assert asker_of(token(0, 1, 7)) != asker_of(token(0, 2, 7))
    assert principal_of(token(0, 1, 7)) == 0
    shares = {asker_of(token(0, 1, 7)), asker_of(token(1, 1, 7))}
    assert len(shares) == 2, "a seat is not taken for a principal"


def test_who_asks_without_a_seat_may_take_everything() -> None:
    assert asker_of(7) == EVERYBODY
