"""What the ports of HTTP and probes do for strangers, over real sockets."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from anabranch.apps.asgi import (
    PIPELINED_MAX,
    PROBE_CONNECTIONS,
    AsgiServer,
    http_server,
    probe_server,
)
from anabranch.apps.pods.probe import Probes, Readiness
from anabranch.core.budget import EVERYBODY
from anabranch.core.limits import Limits
from anabranch.shell.server.budgets import Budgets

METRICS = b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n"
LIVE = b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n"


class Site:
    """A process's probes and HTTP, and how often each was asked."""

    def __init__(self) -> None:
        self.budgets = Budgets(Limits(), connections_max=4)
        self.pages = self.calls = 0
        self.probes = probe_server(
            Probes(
                failed=lambda: None,
                readiness=lambda: Readiness("broker-0", "broker", []),
                metrics=self._page,
            )
        )
        self.front = http_server(self, None, self.budgets)

    def _page(self) -> bytes:
        self.pages += 1
        return b"a_metric 1\n"

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            for step in ("startup", "shutdown"):
                await receive()
                await send({"type": f"lifespan.{step}.complete"})
            return
        self.calls += 1
        headers = [(b"content-length", b"2")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b"ok"})


def run(which: str, work: Callable[[Site, int], Awaitable[None]]) -> Site:
    async def serve() -> Site:
        site = Site()
        server: AsgiServer = getattr(site, which)
        port = await server.start("127.0.0.1", 0)
        try:
            async with asyncio.timeout(30):
                await work(site, port)
        finally:
            await server.stop()
        return site

    return asyncio.run(serve())


async def exchange(port: int, sent: bytes) -> bytes:
    """All that the server says until it closes."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(sent)
    try:
        return await reader.read()
    finally:
        writer.close()


def test_one_connection_to_the_probes_is_one_answer() -> None:
    async def work(site: Site, port: int) -> None:
        said = await exchange(port, 500 * METRICS)
        assert said.count(b"HTTP/1.1 200 OK") == 1
        assert said.endswith(b"a_metric 1\n")

    assert run("probes", work).pages == 1


def test_probes_are_answered_while_others_hold_every_connection() -> None:
    async def work(site: Site, port: int) -> None:
        assert site.budgets.connections.take(EVERYBODY, site.budgets.connections.limit)
        held = [
            await asyncio.open_connection("127.0.0.1", port) for _ in range(2 * PROBE_CONNECTIONS)
        ]
        assert b'"live":true' in await exchange(port, LIVE)
        oldest = held[: PROBE_CONNECTIONS + 1]
        assert {await reader.read() for reader, _ in oldest} == {b""}, "they made room"
        assert b'"live":true' in await exchange(port, LIVE)
        for _, writer in held:
            writer.close()

    run("probes", work)


def test_http_answers_some_pipelined_requests_and_then_closes() -> None:
    async def work(site: Site, port: int) -> None:
        said = await exchange(port, 500 * LIVE)
        assert said.count(b"HTTP/1.1 200 OK") == PIPELINED_MAX

    assert run("front", work).calls == PIPELINED_MAX


@pytest.mark.parametrize("which", ["probes", "front"])
def test_odd_requests_leave_no_lines_in_the_log(
    which: str, caplog: pytest.LogCaptureFixture
) -> None:
    upgrade = LIVE[:-2] + b"Connection: Upgrade, close\r\nUpgrade: websocket\r\n\r\n"

    async def work(site: Site, port: int) -> None:
        assert b"HTTP/1.1 400 Bad Request" in await exchange(port, b"\0\r\n\r\n")
        assert b"HTTP/1.1 200 OK" in await exchange(port, upgrade)

    with caplog.at_level(logging.WARNING):
        run(which, work)
    assert [record.getMessage() for record in caplog.records] == []
