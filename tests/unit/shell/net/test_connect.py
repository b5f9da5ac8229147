"""Connections to hosts of which some addresses are dead, and whose names may lead elsewhere."""

import asyncio
import socket
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from anabranch.shell.net.connect import Hint, reach

PATIENCE_S = 30.0


def run(scene: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(scene, PATIENCE_S))


@contextmanager
def listening(host: str, port: int = 0, backlog: int = 8) -> Iterator[int]:
    with socket.socket() as made:
        made.bind((host, port))
        made.listen(backlog)
        yield made.getsockname()[1]


@contextmanager
def silent(host: str, port: int) -> Iterator[None]:
    """Nobody takes a connection there, and nobody refuses one: the queue of those to be taken is
    full.
    """
    with listening(host, port, 0), socket.socket() as first, socket.socket() as second:
        for each in (first, second):
            each.setblocking(False)
            each.connect_ex((host, port))
        yield


def leads_to(monkeypatch: pytest.MonkeyPatch, *hosts: str) -> list[str]:
    """Every name; what was asked for is noted."""
    asked: list[str] = []

    async def answer(_loop: Any, host: str, port: int, **_more: Any) -> Any:
        asked.append(host)
        if not hosts:
            await asyncio.Event().wait()
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (each, port)) for each in hosts]

    monkeypatch.setattr(asyncio.BaseEventLoop, "getaddrinfo", answer)
    return asked


async def met(port: int, hint: Hint | None = None) -> str:
    made = await reach("somebody", port, hint)
    with made:
        return made.getpeername()[0]


def test_an_address_that_is_dead_holds_up_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scene() -> None:
        with listening("127.0.0.3") as port, silent("127.0.0.1", port):
            leads_to(monkeypatch, "127.0.0.1", "127.0.0.2", "127.0.0.3")
            assert await met(port) == "127.0.0.3"

    run(scene())


def test_a_name_is_resolved_for_each_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scene() -> None:
        with listening("127.0.0.1") as port:
            asked = leads_to(monkeypatch, "127.0.0.1")
            for _ in range(3):
                await met(port)
            assert asked == ["somebody"] * 3

    run(scene())


def test_whoever_was_met_is_reached_though_no_resolver_answers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def scene() -> None:
        with listening("127.0.0.1") as port:
            leads_to(monkeypatch)
            assert await met(port, Hint("127.0.0.1")) == "127.0.0.1"

    run(scene())


def test_whoever_is_met_meanwhile_is_reached_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scene() -> None:
        with listening("127.0.0.2") as port, silent("127.0.0.1", port):
            asked = leads_to(monkeypatch, "127.0.0.1")
            hint = Hint("127.0.0.1")
            reaching = asyncio.ensure_future(met(port, hint))
            while not asked:  # noqa: ASYNC110
                await asyncio.sleep(0)
            hint.met("127.0.0.2")
            assert await reaching == "127.0.0.2"

    run(scene())


def test_what_stands_in_the_way_is_said_of_each_address(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scene() -> None:
        with listening("127.0.0.1") as port:
            leads_to(monkeypatch, "127.0.0.2", "127.0.0.3")
            with pytest.raises(OSError, match=r"127\.0\.0\.2.*127\.0\.0\.3"):
                await met(port)

    run(scene())


def test_whoever_gives_up_leaves_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    """A socket that is left open is a warning, which is an error here."""

    async def scene() -> None:
        with listening("127.0.0.2") as port, silent("127.0.0.1", port):
            asked = leads_to(monkeypatch, "127.0.0.1")
            reaching = asyncio.ensure_future(met(port))
            while not asked:  # noqa: ASYNC110
                await asyncio.sleep(0)
            reaching.cancel()
            await asyncio.gather(reaching, return_exceptions=True)
            assert reaching.cancelled()

    run(scene())


def test_small_frames_do_not_wait_for_the_acknowledgement_of_those_before() -> None:
    async def scene() -> None:
        with listening("127.0.0.1") as port, await reach("127.0.0.1", port) as made:
            assert made.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)

    run(scene())
