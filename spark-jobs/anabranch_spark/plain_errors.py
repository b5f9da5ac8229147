"""Errors as Spark shows them: their message, and not the way that they took to it.

Spark puts the whole traceback of what its data source raises before the message. An error of this
project says what was asked, what stood in the way and what can be done; the frames of its client
only hide that.
"""

from collections.abc import Callable, Iterator
from functools import wraps
from typing import ParamSpec, TypeVar

from anabranch.errors import AnabranchError

P = ParamSpec("P")
R = TypeVar("R")


def plain(method: Callable[P, R]) -> Callable[P, R]:
    """The method, whose errors of this project have no traceback before this one."""

    @wraps(method)
    def called(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return method(*args, **kwargs)
        except AnabranchError as error:
            fault = error
        raise _bare(fault)

    return called


def plain_rows(rows: Iterator[R]) -> Iterator[R]:
    """The same for what a task gives piece by piece."""
    try:
        yield from rows
        return
    except AnabranchError as error:
        fault = error
    raise _bare(fault)


def _bare(error: AnabranchError) -> AnabranchError:
    """Notes and declared causes stay, as messages."""
    found: BaseException | None = error
    while found is not None:
        found.__suppress_context__ = True
        found.__traceback__ = None
        found = found.__cause__
    return error
