"""Who asks: what a token tells a machine of its caller, for fair shares of what many want.

A driver makes a token of three numbers: the caller's principal, the caller's seat, and the request.
Principals are numbered from 1, in each process anew; 0 stands for callers who aren't told apart.
Seats are numbered from 1 too, one for each connection; tests and tools ask without one.
"""

from anabranch.core.budget import EVERYBODY
from anabranch.core.machine import Token

REQUEST_BITS = 32
SEAT_BITS = 32

Asker = int | str
"""Whose share of a `Budget` a request takes."""


def seat_number(principal: int, serial: int) -> int:
    """Both in one number: what stands before the request in the tokens of a seat."""
    assert 0 <= serial < 1 << SEAT_BITS
    assert principal >= 0, "principals are numbered from 1"
    return (principal << SEAT_BITS) | serial


def principal_of(token: Token) -> int:
    """0: callers aren't told apart."""
    assert token >= 0
    return token >> (REQUEST_BITS + SEAT_BITS)


def asker_of(token: Token) -> Asker:
    """The principal, or the connection where callers aren't told apart."""
    principal = token >> (REQUEST_BITS + SEAT_BITS)
    if principal:
        return principal
    seat = token >> REQUEST_BITS
    return -seat if seat else EVERYBODY
