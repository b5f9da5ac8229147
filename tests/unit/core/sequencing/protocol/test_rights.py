"""Which rights a request to a sequencing replica needs: every request has an answer."""

from typing import get_args

import pytest

from anabranch.core.rights.claims import LOGS, SEEING, Subject, Verb
from anabranch.core.sequencing.protocol.ids import AppendId
from anabranch.core.sequencing.protocol.messages import (
    Append,
    AppendMeta,
    AskTail,
    FindPosition,
    Inspect,
    Locate,
    SetShardOpen,
    Survey,
    ToSequencer,
    Trim,
)
from anabranch.core.sequencing.protocol.rights import _VERBS, SequencingRights

TICKS = Subject(LOGS, "ticks", "shop")
RIGHTS = SequencingRights(TICKS)
ID = AppendId(1, 0, 0)


@pytest.mark.parametrize(
    ("message", "verbs"),
    [
        (Append(1, 0, b"x"), (Verb.APPEND,)),
        (AppendMeta(1, 0, ID, 1, 1, "a"), (Verb.APPEND,)),
        (FindPosition(ID), (Verb.APPEND, Verb.READ)),
        (AskTail(1), (Verb.APPEND, Verb.READ)),
        (Inspect(), SEEING),
        (Survey(), SEEING),
        (Trim(4), (Verb.TRIM,)),
        (SetShardOpen("a", False), (Verb.UPDATE,)),
    ],
    ids=repr,
)
def test_a_request_needs_a_right_on_the_log(message: ToSequencer, verbs: tuple[Verb, ...]) -> None:
    (claim,) = RIGHTS.needs(message)
    assert (claim.about, claim.verbs) == (TICKS, verbs)


def test_finding_the_nodes_needs_no_right() -> None:
    assert RIGHTS.needs(Locate()) == ()


def test_no_request_is_without_an_answer() -> None:
    assert set(get_args(ToSequencer)) == set(_VERBS)
