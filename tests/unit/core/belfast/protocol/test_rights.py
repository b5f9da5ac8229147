"""Which rights a request to a Belfast log needs: every request has an answer."""

from typing import get_args

import pytest

from anabranch.core.belfast.protocol.messages import (
    Append,
    Inspect,
    Join,
    Leave,
    Locate,
    Subscribe,
    ToServer,
    Trim,
)
from anabranch.core.belfast.protocol.rights import BelfastRights
from anabranch.core.rights.claims import LOGS, Subject

TICKS = Subject(LOGS, "ticks", "shop")
RIGHTS = BelfastRights(TICKS)


@pytest.mark.parametrize(
    ("message", "verb"),
    [
        (Append(b"x"), "append"),
        (Subscribe("a", 0), "read"),
        (Trim(3), "trim"),
        (Inspect(), "get"),
        (Leave("a"), "update"),
        (Join("a"), "update"),
    ],
    ids=repr,
)
def test_a_request_needs_a_right_on_the_log(message: ToServer, verb: str) -> None:
    (claim,) = RIGHTS.needs(message)
    assert (claim.about, claim.verbs[0]) == (TICKS, verb)


def test_finding_the_nodes_needs_no_right() -> None:
    assert RIGHTS.needs(Locate()) == ()


def test_whoever_may_do_anything_with_the_log_may_see_how_it_is() -> None:
    (seeing,) = RIGHTS.needs(Inspect())
    for message in (Append(b"x"), Subscribe("a", 0), Trim(3)):
        (claim,) = RIGHTS.needs(message)
        assert set(claim.verbs) <= set(seeing.verbs)


def test_no_request_is_without_an_answer() -> None:
    from anabranch.core.belfast.protocol.rights import _VERBS

    assert set(get_args(ToServer)) == set(_VERBS)
