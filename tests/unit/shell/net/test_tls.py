"""Certificates of listeners and of those who dial them: who is let in, and by which name."""

import asyncio
import ssl
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.certificates import Issuer
from tests.unit.shell.nodes import run

from anabranch.core.errors import BadRequest
from anabranch.shell.net.tls import (
    TlsSettings,
    bears_name,
    check_files,
    check_mutual,
    dialing,
    listening,
    trusting,
)


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Issuer:
    return Issuer(tmp_path_factory.mktemp("tls") / "ours")


@pytest.fixture(scope="module")
def server(ours: Issuer) -> TlsSettings:
    return ours.issue("server", "DNS:localhost,IP:127.0.0.1")


@pytest.fixture(scope="module")
def client(ours: Issuer) -> TlsSettings:
    return ours.issue("client", "DNS:client.svc")


@pytest.fixture(scope="module")
def stranger(tmp_path_factory: pytest.TempPathFactory) -> TlsSettings:
    return Issuer(tmp_path_factory.mktemp("tls") / "theirs", "theirs").issue("stranger")


class Certified:
    """A transport whose other side has shown these names."""

    def __init__(self, *names: tuple[str, str]) -> None:
        self._shown = {"subjectAltName": names} if names else None

    def get_extra_info(self, name: str) -> object:
        assert name == "peercert"
        return self._shown


def bears(name: str, *shown: tuple[str, str]) -> bool:
    return bears_name(cast("asyncio.Transport", Certified(*shown)), name)


async def handshake(
    listener: ssl.SSLContext, dialer: ssl.SSLContext, name: str = "localhost"
) -> tuple[bytes, set[str]]:
    """What the listener says, and the names of the certificate that it was shown."""
    shown: set[str] = set()

    async def talk(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        found: dict[str, Any] = writer.get_extra_info("peercert") or {}
        shown.update(value for _, value in found.get("subjectAltName", ()))
        writer.write(b"welcome")
        writer.close()

    listening_at = await asyncio.start_server(talk, "127.0.0.1", 0, ssl=listener)
    port = listening_at.sockets[0].getsockname()[1]
    try:
        reader, writer = await asyncio.open_connection(
            "127.0.0.1", port, ssl=dialer, server_hostname=name
        )
        said = await reader.read()
        writer.close()
    finally:
        listening_at.close()
    return said, shown


def met(listener: TlsSettings, dialer: TlsSettings, **more: Any) -> tuple[bytes, set[str]]:
    found: list[tuple[bytes, set[str]]] = []

    async def scene() -> None:
        context = listening(listener, strangers=more.get("strangers", False))
        assert context is not None
        found.append(
            await handshake(context, trusting(dialer).current(), more.get("name", "localhost"))
        )

    run(scene())
    return found[0]


def turned_away(listener: TlsSettings, dialer: TlsSettings, **more: Any) -> bool:
    """Whether the dialer never hears the welcome. Its own part of the handshake may be over before
    the listener has looked at its certificate.
    """
    try:
        said, shown = met(listener, dialer, **more)
    except (ssl.SSLError, ConnectionError):
        return True
    return (said, shown) == (b"", set())


def test_without_files_there_is_no_tls() -> None:
    assert listening(TlsSettings()) is None
    assert dialing(TlsSettings()) is None
    assert not TlsSettings()
    assert TlsSettings(cert="a", ca="b").files == ("a", "b")


def test_peers_show_one_another_a_certificate(server: TlsSettings, client: TlsSettings) -> None:
    said, shown = met(server, client)
    assert (said, shown) == (b"welcome", {"client.svc"})


def test_a_client_needs_none_where_strangers_may_come(
    server: TlsSettings, client: TlsSettings
) -> None:
    only_trusts = TlsSettings(ca=client.ca)
    assert met(server, only_trusts, strangers=True) == (b"welcome", set())
    assert met(server, client, strangers=True) == (b"welcome", {"client.svc"})
    assert met(replace(server, ca=""), only_trusts) == (b"welcome", set())


def test_a_peer_without_a_certificate_is_cut_off(server: TlsSettings) -> None:
    assert turned_away(server, TlsSettings(ca=server.ca))


@pytest.mark.parametrize("strangers", [True, False])
def test_a_certificate_of_another_authority_is_never_taken(
    server: TlsSettings, stranger: TlsSettings, *, strangers: bool
) -> None:
    shown = replace(stranger, ca=server.ca)
    assert turned_away(server, shown, strangers=strangers)


def test_a_listener_of_another_authority_is_not_believed(
    stranger: TlsSettings, client: TlsSettings
) -> None:
    with pytest.raises(ssl.SSLCertVerificationError):
        met(stranger, client, name="127.0.0.1")


def test_a_listener_must_have_the_name_that_was_dialed(
    server: TlsSettings, client: TlsSettings
) -> None:
    with pytest.raises(ssl.SSLCertVerificationError, match="elsewhere"):
        met(server, client, name="elsewhere")
    assert met(server, client, name="127.0.0.1")[0] == b"welcome"


def test_old_protocols_are_refused(server: TlsSettings, client: TlsSettings) -> None:
    async def scene() -> None:
        context, dialer = listening(server), trusting(client).current()
        assert context is not None
        dialer.maximum_version = ssl.TLSVersion.TLSv1_2
        with pytest.raises((ssl.SSLError, ConnectionError)):
            await handshake(context, dialer)

    run(scene())


@pytest.mark.parametrize(
    ("name", "shown", "bears_it"),
    [
        ("a.svc", ("DNS", "a.svc"), True),
        ("A.SVC.", ("DNS", "a.svc"), True),
        ("a.svc", ("DNS", "b.svc"), False),
        ("a.svc", ("DNS", "*.svc"), True),
        ("a.b.svc", ("DNS", "*.svc"), False),
        ("svc", ("DNS", "*.svc"), False),
        (".svc", ("DNS", "*.svc"), False),
        ("a.svc", ("DNS", "a*.svc"), False),
        ("a.svc", ("URI", "a.svc"), False),
        ("127.0.0.1", ("IP Address", "127.0.0.1"), True),
        ("::1", ("IP Address", "0:0:0:0:0:0:0:1"), True),
        ("::1", ("IP Address", "0:0:0:0:0:0:0:1\n"), True),
        ("127.0.0.1", ("DNS", "127.0.0.2"), False),
        ("a.svc", ("IP Address", "a.svc"), False),
    ],
)
def test_a_certificate_is_for_the_names_in_it(
    name: str, shown: tuple[str, str], *, bears_it: bool
) -> None:
    assert bears(name, shown) is bears_it
    assert bears(name, ("DNS", "another.svc"), shown) is bears_it


label = st.text("abcxyz0-", min_size=1, max_size=6)


@given(st.lists(label, min_size=1, max_size=4), st.lists(label, min_size=1, max_size=4))
def test_a_wildcard_stands_for_one_first_label(name: list[str], pattern: list[str]) -> None:
    found = bears(".".join(name), ("DNS", ".".join(["*", *pattern])))
    assert found == (name[1:] == pattern)


def test_who_has_shown_nothing_bears_no_name() -> None:
    assert not bears("a.svc")


def test_half_a_configuration_of_peers_is_refused(server: TlsSettings) -> None:
    check_mutual(server, "peer_tls")
    check_mutual(TlsSettings(), "peer_tls")
    for part in ("cert", "key", "ca"):
        with pytest.raises(BadRequest, match="peer_tls"):
            check_mutual(replace(server, **{part: ""}), "peer_tls")


def test_files_that_dont_belong_together_are_named(
    server: TlsSettings, client: TlsSettings, tmp_path: Path
) -> None:
    check_files(server)
    missing = str(tmp_path / "missing")
    (tmp_path / "garbage").write_text("no certificate")
    for wrong in (
        replace(server, key=client.key),
        replace(server, ca=missing),
        replace(server, cert=str(tmp_path / "garbage")),
    ):
        with pytest.raises(BadRequest, match="belong together"):
            check_files(wrong)
    with pytest.raises(BadRequest, match="has no certificate"):
        check_files(replace(server, cert=""))
