"""Logs of other engines are asked only of servers that know engines."""

import asyncio
from collections.abc import Generator
from typing import Any

import pytest
from msgspec import structs

from anabranch import aio, testing
from anabranch.client import catalogue
from anabranch.client.catalogue import engine_settings
from anabranch.core.bolt.protocol.commands import EngineSettings
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

    monkeypatch.setattr(catalogue, "replace", dropped)

    async def scene(url: str) -> None:
        async with aio.connect(url) as service:
            with pytest.raises(BadRequest, match="bolt engine was made instead: delete it"):
                await service.create("ticks", engine="belfast")

    with testing.server() as server:
        asyncio.run(scene(server.url))


def test_a_server_that_knows_no_black_boxes_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """It makes the log all the same, with journals of its own."""

    def dropped(request: CreateLog, *, settings: EngineSettings, **more: Any) -> CreateLog:
        settings = structs.replace(settings, black_box="")
        return structs.replace(request, settings=settings, **more)

    monkeypatch.setattr(catalogue, "replace", dropped)

    async def scene(url: str) -> None:
        async with aio.connect(url) as service:
            with pytest.raises(BadRequest, match="upgrade the server"):
                await service.create("a", engine="erwin", black_box="kafka://host:9092/topic")

    with testing.server() as server:
        asyncio.run(scene(server.url))


def test_a_log_is_ensured_only_with_the_promises_that_were_asked_for() -> None:
    async def scene(url: str) -> None:
        async with aio.connect(url) as service:
            made = await service.create("audit", engine="erwin", durability="memory")
            with pytest.raises(
                BadRequest, match=r"with the mode st: .* with the mode m, and keeps"
            ):
                await service.ensure("audit", engine="erwin", mode="st")
            with pytest.raises(
                BadRequest, match=r"durability fsync: .* with the durability memory"
            ):
                await service.ensure("audit", engine="erwin", durability="fsync")
            again = await service.ensure("audit", engine="erwin", mode="m", durability="memory")
            assert again.id == made.id
            assert (await service.ensure("audit", engine="erwin")).id == made.id

    with testing.server() as server:
        asyncio.run(scene(server.url))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"shards": 2**65}, "shards: .*isn't from 0 up to"),
        ({"shards": -1}, "shards: -1 isn't from"),
        ({"shards": True}, "shards: it must be a whole number, not True"),
        ({"replicas": 0}, "replicas: there must be one at least"),
        ({"sequencers": 0}, "sequencers: there must be one at least"),
        ({"replicas": 1.5}, "replicas: it must be a whole number, not 1.5"),
        ({"sequencers": "2"}, "sequencers: it must be a whole number, not '2'"),
        ({"addresses": "127.0.0.1:1"}, "the addresses: it must be a list"),
        ({"addresses": ["\x1b[31mx:1"]}, "host:port|Invalid|isn't"),
        ({"addresses": ["[::1"]}, "Invalid IPv6 URL"),
        ({"addresses": [7]}, "an address: it must be text, not int"),
        ({"cluster": "\ud800"}, "a cluster: .*parts that aren't Unicode text"),
        ({"name": "\ud800"}, "name: .*parts that aren't Unicode text"),
        ({"why": b"x"}, "why: it must be text, not bytes"),
        ({"owner": 3}, "owner: it must be text, not int"),
        ({"shards": 0}, "it can have 1 to 1000 shards, not 0"),
        ({"addresses": ["x"]}, "the address 'x' isn't host:port"),
        ({"addresses": ["unix:/x"]}, "isn't host:port|Port could not be cast"),
    ],
)
def test_what_cannot_be_is_refused_by_name(given: dict[str, Any], said: str) -> None:
    async def scene(url: str) -> None:
        async with aio.connect(url) as service:
            with pytest.raises(BadRequest, match=said):
                await service.create(**{"name": "ticks", "engine": "belfast", **given})
            assert [log.name async for log in service.logs()] == []

    with testing.server() as server:
        asyncio.run(scene(server.url))


def test_addresses_may_come_from_any_iterable() -> None:
    found = engine_settings(
        shards=1, replicas=1, sequencers=1, addresses=(f"host:{n}" for n in (1, 2)), cluster="c"
    )
    assert found.addresses == ("host:1", "host:2")
