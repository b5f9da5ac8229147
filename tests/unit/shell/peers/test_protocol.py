"""Who is taken for a process of the same cluster, by the greetings of both engines."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from anabranch.core.errors import AccessDenied, AnabranchError, VersionMismatch, WrongCluster
from anabranch.core.wire.peers import Greeting
from anabranch.shell.authority.tokens import Tokens
from anabranch.shell.peers.engines import belfast_node
from anabranch.shell.peers.protocol import PeerProtocol

NODE = belfast_node()
OURS = Greeting(
    version=NODE.version, cluster="c", node="a:1", release="0", token="secret", incarnation="i"
)
THEIRS = replace(OURS, node="b:2")


def objection(
    theirs: Greeting,
    token: str | None = "secret",
    protocol: PeerProtocol = NODE,
    shown: str | None = None,
) -> AnabranchError | None:
    """`shown`: the name of the certificate, where one is asked for."""
    shows = None if shown is None else (lambda name: name == shown)
    return protocol.objection(OURS, Tokens(token), theirs, shows)


def test_one_of_ours_is_taken() -> None:
    assert objection(THEIRS) is None
    assert objection(THEIRS, shown="b") is None


@pytest.mark.parametrize(
    ("theirs", "error", "said"),
    [
        (replace(THEIRS, version=OURS.version + 1), VersionMismatch, ""),
        (replace(THEIRS, cluster="d"), WrongCluster, "d"),
        (replace(THEIRS, incarnation="another"), WrongCluster, "of its bucket"),
        (replace(THEIRS, token="guessed"), AccessDenied, "peer_token"),
        (replace(THEIRS, token=None), AccessDenied, "peer_token"),
    ],
)
def test_any_other_is_told_why(theirs: Greeting, error: type[AnabranchError], said: str) -> None:
    found = objection(theirs)
    assert found is not None
    assert type(found) is error
    assert said in found.message
    assert "secret" not in found.message


def test_a_certificate_for_another_name_isnt_enough() -> None:
    found = objection(THEIRS, shown="somebody")
    assert isinstance(found, AccessDenied)
    assert "no certificate that was issued for" in found.message


def test_a_version_is_told_before_anything_else_is_looked_at() -> None:
    stranger = replace(THEIRS, version=99, cluster="d", token=None)
    assert isinstance(objection(stranger), VersionMismatch)


@given(
    st.sampled_from([OURS.version, OURS.version + 1, 0]),
    st.sampled_from(["c", "d", ""]),
    st.sampled_from(["i", "j", ""]),
    st.sampled_from(["secret", "other", "", None]),
    st.sampled_from(["b:2", "[::1]:3"]),
)
def test_nobody_is_taken_who_differs_in_anything_that_counts(
    version: int, cluster: str, incarnation: str, token: str | None, node: str
) -> None:
    theirs = Greeting(
        version=version,
        cluster=cluster,
        node=node,
        release="another",
        token=token,
        incarnation=incarnation,
    )
    ours = (OURS.version, OURS.cluster, OURS.incarnation, "secret")
    same = (version, cluster, incarnation, token) == ours
    assert (objection(theirs) is None) == same
