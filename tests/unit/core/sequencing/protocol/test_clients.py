"""What a server must know of the sequencing protocol: whom it greets, and what replies count as."""

import pytest

from anabranch.core.limits import KIB, Limits
from anabranch.core.sequencing.protocol.clients import SEQUENCING
from anabranch.core.sequencing.protocol.ids import AppendId
from anabranch.core.sequencing.protocol.messages import (
    SEQUENCING_VERSION,
    Append,
    AppendMeta,
    AskTail,
    FindPosition,
    Hello,
    Inspect,
    Locate,
    Survey,
    Trim,
    Welcome,
)

WELCOME = Welcome(SEQUENCING_VERSION, "c", "n:1", "0", 1, 1)
ID = AppendId(1, 0, 0)


@pytest.mark.parametrize(
    ("version", "cluster", "code"),
    [
        (SEQUENCING_VERSION, "c", None),
        (SEQUENCING_VERSION + 1, "c", "version-mismatch"),
        (SEQUENCING_VERSION, "another", "wrong-cluster"),
    ],
)
def test_a_client_of_another_cluster_or_version_is_turned_away(
    version: int, cluster: str, code: str | None
) -> None:
    objection = SEQUENCING.objection(Hello(version, cluster, "client"), WELCOME)
    assert (objection and objection.code) == code


@pytest.mark.parametrize(
    "message", [Append(1, 0, b"x"), AppendMeta(1, 0, ID, 1, 1, "a"), Trim(1)], ids=repr
)
def test_what_changes_something_is_finished_by_a_stopping_server(message: object) -> None:
    assert SEQUENCING.reply_size(message, Limits()) is None


@pytest.mark.parametrize(
    ("message", "size"),
    [
        (Locate(), 256 * KIB),
        (Inspect(), 256 * KIB),
        (Survey(), 256 * KIB),
        (AskTail(1), 0),
        (FindPosition(ID), 0),
    ],
    ids=repr,
)
def test_a_question_counts_as_what_its_reply_may_be(message: object, size: int) -> None:
    assert SEQUENCING.reply_size(message, Limits()) == (size, size)


def test_a_hello_names_the_node_that_it_is_for() -> None:
    hello = Hello(SEQUENCING_VERSION, "c", "client", node="/ticks/sequencer-0")
    assert SEQUENCING.node(hello) == "/ticks/sequencer-0"
