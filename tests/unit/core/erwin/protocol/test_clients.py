"""What a server must know of the shard protocol: whom it greets, and what replies count as."""

import pytest

from anabranch.core.erwin.protocol.clients import ERWIN
from anabranch.core.erwin.protocol.messages import (
    ERWIN_VERSION,
    Data,
    Hello,
    Read,
    Subscribe,
    Welcome,
)
from anabranch.core.limits import KIB, Limits
from anabranch.core.sequencing.protocol.messages import Locate

WELCOME = Welcome(ERWIN_VERSION, "c", "n:1", "0", 1, 1)
LIMITS = Limits(read_bytes_max=1_000 * KIB)


def read(bytes_max: int, wait_ms: int = 0) -> Read:
    return Read(shard="a", start=0, bytes_max=bytes_max, records_max=1, wait_ms=wait_ms)


@pytest.mark.parametrize(
    ("version", "cluster", "code"),
    [
        (ERWIN_VERSION, "c", None),
        (ERWIN_VERSION + 1, "c", "version-mismatch"),
        (ERWIN_VERSION, "another", "wrong-cluster"),
    ],
)
def test_a_client_of_another_cluster_or_version_is_turned_away(
    version: int, cluster: str, code: str | None
) -> None:
    objection = ERWIN.objection(Hello(version, cluster, "client"), WELCOME)
    assert (objection and objection.code) == code


@pytest.mark.parametrize(
    ("message", "own", "shared"),
    [
        (read(10 * KIB), 10 * KIB, 10 * KIB),
        (read(2_000 * KIB), 1_000 * KIB, 1_000 * KIB),
        (read(2_000 * KIB, wait_ms=5), 1_000 * KIB, 64 * KIB),
        (Locate(), 256 * KIB, 256 * KIB),
        (Subscribe(shard="a", start=0), 0, 0),
    ],
)
def test_a_reply_counts_as_what_it_may_be(message: object, own: int, shared: int) -> None:
    assert ERWIN.reply_size(message, LIMITS) == (own, shared)


def test_what_stores_something_is_finished_by_a_stopping_server() -> None:
    assert ERWIN.reply_size(Data(1, 0, b"x"), LIMITS) is None


def test_a_subscription_may_be_given_another_window() -> None:
    message = Subscribe(shard="a", start=0, window_bytes=7)
    assert ERWIN.window(message) == 7
    assert ERWIN.window(ERWIN.with_window(message, 3)) == 3
