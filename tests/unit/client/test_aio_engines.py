"""Logs of other engines are asked only of servers that know engines."""

import asyncio
from collections.abc import Generator

import pytest

from anabranch import aio, testing
from anabranch.client import aio as aio_client
from anabranch.core.bolt.protocol.messages import CreateLog
from anabranch.core.errors import BadRequest
from anabranch.shell.server import engines


@pytest.fixture
def older_server(monkeypatch: pytest.MonkeyPatch) -> Generator[testing.Server]:
    """It welcomes as versions did that made a Bolt log whatever engine was asked for."""
    monkeypatch.setattr(engines, "ENGINES", ())
    with testing.server() as server:
        yield server


def test_an_older_server_is_not_asked_for_a_log_of_another_engine(
    older_server: testing.Server,
) -> None:
    async def scene() -> list[str]:
        async with aio.connect(older_server.url) as service:
            with pytest.raises(BadRequest, match=r"belfast log ticks: the server is too old .*upg"):
                await service.create("ticks", engine="belfast", shards=2)
            await service.create("orders")
            return [log.name async for log in service.logs()]

    assert asyncio.run(scene()) == ["orders"]


def test_a_server_that_was_not_upgraded_with_the_others_is_found_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The welcome was another server's, and this one drops what it doesn't know of a request."""

    def dropped(request: CreateLog, **_: object) -> CreateLog:
        return request

    monkeypatch.setattr(aio_client, "replace", dropped)

    async def scene(url: str) -> None:
        async with aio.connect(url) as service:
            with pytest.raises(BadRequest, match="a bolt log was made instead: delete it"):
                await service.create("ticks", engine="belfast")

    with testing.server() as server:
        asyncio.run(scene(server.url))
