"""A node serves clients that mean its log, in its version, whichever engine's they are."""

from typing import Any

import pytest

from anabranch.core.belfast.protocol import messages as belfast
from anabranch.core.belfast.protocol.clients import BELFAST
from anabranch.core.errors import VersionMismatch, WrongCluster
from anabranch.core.erwin.protocol import messages as erwin
from anabranch.core.erwin.protocol.clients import ERWIN
from anabranch.core.sequencing.protocol import messages as sequencing
from anabranch.core.sequencing.protocol.clients import SEQUENCING

ENGINES = pytest.mark.parametrize(
    ("protocol", "messages"), [(BELFAST, belfast), (ERWIN, erwin), (SEQUENCING, sequencing)]
)


@ENGINES
def test_a_client_of_another_version_or_log_is_refused(protocol: Any, messages: Any) -> None:
    welcome = messages.Welcome(3, "here", "/7/node", "1.0", 1, 1)

    def objection(version: int, cluster: str) -> Any:
        return protocol.objection(
            messages.Hello(version, cluster, "a test", node="/7/node"), welcome
        )

    assert objection(3, "here") is None
    assert isinstance(objection(2, "here"), VersionMismatch)
    assert isinstance(objection(3, "elsewhere"), WrongCluster)
    assert protocol.node(messages.Hello(3, "here", "a test", node="/7/node")) == "/7/node"


def test_a_subscription_gets_another_window_and_stays_the_same() -> None:
    asked = erwin.Subscribe(shard="a", start=5, window_bytes=9)
    given = ERWIN.with_window(asked, 4)
    assert ERWIN.window(asked) == 9
    assert given == erwin.Subscribe(shard="a", start=5, window_bytes=4)
