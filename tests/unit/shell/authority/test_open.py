"""The authority that a process's settings ask for, and how long it waits for the API server."""

import asyncio
import io
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace
from tests.certificates import certified
from tests.unit.shell.nodes import PATIENCE_S, run

from anabranch.core.errors import BadRequest, Unavailable
from anabranch.core.rights.claims import LOGS, Claim, Subject, Verb
from anabranch.shell.authority.open import NoCatalogue, by_kubernetes, namespace_of
from anabranch.shell.authority.reviewer import Warden
from anabranch.shell.authority.settings import AuthMode, AuthSettings
from anabranch.shell.telemetry.log import Log

CLAIM = Claim(Subject(LOGS, "ticks", "home"), (Verb.APPEND,))
DEADLINE_MS = round(PATIENCE_S * 1_000)


@pytest.fixture
def account(tmp_path: Path) -> Path:
    """What a pod finds of its service account."""
    folder = tmp_path / "account"
    folder.mkdir()
    (folder / "token").write_text("mine")
    (folder / "namespace").write_text("home\n")
    (folder / "ca.crt").write_bytes(Path(certified(tmp_path / "server").ca).read_bytes())
    return folder


@pytest.fixture
def mute() -> Iterator[str]:
    """An API server whose machine accepts connections, and that never says a word."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield f"https://127.0.0.1:{listener.getsockname()[1]}"


def settings(account: Path, server: str = "") -> AuthSettings:
    return AuthSettings(mode=AuthMode.KUBERNETES, folder=str(account), server=server)


def warden(
    account: Path, server: str, *, review_ms: int = 4_000, deadline_ms: int = DEADLINE_MS
) -> Warden:
    log = Log(time.time_ns, stream=io.StringIO())
    given = replace(settings(account, server), review_ms=review_ms, deadline_ms=deadline_ms)
    return by_kubernetes(given, NoCatalogue(), log)


def test_a_review_that_is_never_answered_is_given_up_before_the_request_is(
    account: Path, mute: str
) -> None:
    async def scene() -> None:
        made = warden(account, mute, review_ms=1_000)
        with pytest.raises(Unavailable) as refused:
            await made.admit("a client's", "10.0.0.1")
        assert "the Kubernetes API server" in refused.value.message
        assert "doesn't answer a TokenReview within 1 s" in refused.value.message
        assert made.counters.failed == 1
        await made.close()

    run(scene())


def test_clients_that_come_together_ask_once_and_are_all_told(account: Path, mute: str) -> None:
    async def scene() -> None:
        made = warden(account, mute, review_ms=1_000)
        told = await asyncio.gather(
            *(made.admit("a client's", f"10.0.0.{n}") for n in range(20)), return_exceptions=True
        )
        assert {type(each) for each in told} == {Unavailable}
        assert made.counters.questions == 1
        await made.close()

    run(scene())


def test_a_review_takes_no_longer_than_the_request_may(account: Path, mute: str) -> None:
    """Settings of an earlier version may have a deadline that is shorter than a review's."""

    async def scene() -> None:
        made = warden(account, mute, deadline_ms=1_000)
        with pytest.raises(Unavailable, match="1 s"):
            await made.admit("a client's")
        await made.close()

    run(scene())


@pytest.mark.parametrize("name", ["allow_ms", "deny_ms", "deadline_ms", "review_ms"])
def test_times_that_would_never_let_anybody_in_are_refused(name: str) -> None:
    with pytest.raises(BadRequest, match=name):
        msgspec.convert({name: 999}, AuthSettings)


def test_a_process_that_is_no_pod_is_told_to_name_the_server(
    account: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    with pytest.raises(BadRequest, match="say where the API server is"):
        warden(account, "")


def test_a_pod_finds_its_server_and_its_namespace(
    account: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "fd00::1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    warden(account, "")
    assert namespace_of(settings(account)) == "home"
    (account / "namespace").unlink()
    with pytest.raises(BadRequest, match=r"auth\.namespace"):
        namespace_of(settings(account))


def test_who_asks_by_id_has_no_catalogue_here() -> None:
    async def scene() -> None:
        with pytest.raises(AssertionError, match="7"):
            await NoCatalogue().subject("7")

    run(scene())
