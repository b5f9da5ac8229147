"""An error travels as a value and is raised as the same error on the other side."""

import msgspec
import pytest

from anabranch.core.errors import (
    AnabranchError,
    AppendBlocked,
    BadRequest,
    LogExists,
    Overloaded,
    UnknownLog,
)
from anabranch.core.errors.refused import Refused

ERRORS = [
    AppendBlocked("orders", "orders--fork"),
    BadRequest("limit of 0", "at least 1 must be asked for"),
    LogExists("orders"),
    Overloaded("requests", 7, "requests_max"),
    UnknownLog("orders"),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: error.code)
def test_what_was_raised_there_is_raised_here(error: AnabranchError) -> None:
    sent = msgspec.msgpack.encode(Refused.of(error))
    raised = msgspec.msgpack.decode(sent, type=Refused).error()
    assert type(raised) is type(error)
    assert (raised.message, raised.facts) == (error.message, error.facts)
    assert str(raised) == str(error)


def test_an_error_of_a_later_version_keeps_its_words() -> None:
    raised = Refused("of-tomorrow", "it says so itself", {"log": "orders"}).error()
    assert type(raised) is AnabranchError
    assert raised.message == "it says so itself"
    assert raised.facts == {"log": "orders"}
