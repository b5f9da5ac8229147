"""Which rights a request to a shard needs: every request has an answer."""

from typing import get_args

import pytest

from anabranch.core.erwin.protocol.messages import Data, Read, Subscribe, ToShard
from anabranch.core.erwin.protocol.rights import ShardRights
from anabranch.core.rights.claims import LOGS, Subject
from anabranch.core.sequencing.protocol.messages import Locate

TICKS = Subject(LOGS, "ticks", "shop")
RIGHTS = ShardRights(TICKS)


@pytest.mark.parametrize(
    ("message", "verb"),
    [
        (Data(1, 0, b"x"), "append"),
        (Read(shard="a", start=0, bytes_max=1, records_max=1), "read"),
        (Subscribe(shard="a", start=0), "read"),
    ],
    ids=repr,
)
def test_a_request_needs_a_right_on_the_log(message: ToShard, verb: str) -> None:
    (claim,) = RIGHTS.needs(message)
    assert (claim.about, claim.verbs) == (TICKS, (verb,))
    assert RIGHTS.kept(message) is type(message)


def test_finding_the_nodes_needs_no_right() -> None:
    assert RIGHTS.needs(Locate()) == ()


def test_no_request_is_without_an_answer() -> None:
    from anabranch.core.erwin.protocol.rights import _VERBS

    assert set(get_args(ToShard)) == set(_VERBS)
