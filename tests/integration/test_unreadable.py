"""A record that a log took before there was a limit on headers, and whoever comes to read it."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from tests.integration.cli_server import ANABRANCH, bare

from anabranch import Deliver, Event, aio
from anabranch.apps.http import build
from anabranch.apps.settings import Settings
from anabranch.apps.up import Embedded, Endpoint, serve
from anabranch.cli.failure import Exit
from anabranch.core.bolt.broker.write_path import appends
from anabranch.core.bolt.protocol.clients import BOLT
from anabranch.core.bolt.protocol.messages import Append
from anabranch.core.errors import BatchUnreadable
from anabranch.core.limits import Limits
from anabranch.core.machine import Buffer
from anabranch.core.records.batch import Header, pack, verify
from anabranch.core.records.codecs import Codec
from anabranch.core.records.record import BATCH_HEADERS_CEILING, Record, encode
from anabranch.shell.server.local import Local

POISON_AT = 2


def _unchecked(buffer: Buffer, limits: Limits, where: str) -> Header:
    """As a version that doesn't know the limit."""
    return verify(buffer, where)


@pytest.fixture(scope="module")
def poison() -> bytes:
    headers = (("", b""),) * (BATCH_HEADERS_CEILING + 1)
    return pack(encode([Record(b"poison", headers=headers)], now=1), Codec.ZSTD)


@pytest.fixture
def old_version() -> Iterator[pytest.MonkeyPatch]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(appends, "check", _unchecked)
        yield patch


async def _poisoned(
    service: aio.Service, embedded: Embedded, poison: bytes, old: pytest.MonkeyPatch
) -> aio.Log:
    log = await service.create("orders")
    await log.append(b"0")
    await log.append(b"1")
    local = Local(embedded.host, embedded.broker, BOLT)
    await local.call(Append(log.id, poison))
    local.close()
    old.undo()
    await log.append(b"3")
    return log


def test_a_stored_poison_record_is_named_and_read_past_by_all_readers(
    poison: bytes, old_version: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    async def scenario() -> None:
        stop, found = asyncio.Event(), asyncio.get_running_loop().create_future()
        embedded: list[Embedded] = []

        def app(log: Embedded) -> object:
            embedded.append(log)
            return build(log)

        settings = Settings(data=str(tmp_path), port=0, http_port=0)
        server = asyncio.create_task(serve(settings, found.set_result, app=app, stop=stop))
        endpoint: Endpoint = await found
        url = f"anabranch://{endpoint.frames}"
        async with aio.connect(url) as service:
            log = await _poisoned(service, embedded[0], poison, old_version)
            await _by_reading(log)
            await _by_subscribing(log)
        await _by_http(f"http://{endpoint.http}/v1/logs/orders")
        await _by_shell(url)
        stop.set()
        await server

    asyncio.run(scenario())


async def _by_reading(log: aio.Log) -> None:
    values: list[bytes | None] = []

    async def read() -> None:
        async for record in log.read():
            values.append(record.value)  # noqa: PERF401  # what comes before the error counts

    with pytest.raises(BatchUnreadable, match=r"log orders from 2 on.*goes on at 3") as unreadable:
        await read()
    assert values == [b"0", b"1"]
    after = unreadable.value.facts["after"]
    assert after == POISON_AT + 1
    assert [record.value async for record in log.read(POISON_AT + 1)] == [b"3"]


async def _by_subscribing(log: aio.Log) -> None:
    values: list[bytes | None] = []

    def note(event: Event) -> None:
        if isinstance(event, Deliver):
            values.append(event.record.value)

    async with log.subscribe(0) as events:
        while len(values) < POISON_AT:
            note(await anext(events))
        with pytest.raises(BatchUnreadable, match="log orders from 2 on"):
            await anext(events)
        assert values == [b"0", b"1"]
        while len(values) < 3:
            note(await anext(events))
    assert values == [b"0", b"1", b"3"]


async def _by_http(log: str) -> None:
    async with httpx.AsyncClient(timeout=30) as client:
        page = (await client.get(f"{log}/records")).json()
        assert [each["value"] for each in page["records"]] == ["0", "1"]
        assert page["next"] == POISON_AT
        refused = await client.get(f"{log}/records", params={"from": page["next"]})
        problem = refused.json()
        assert (refused.status_code, problem["code"]) == (500, "batch-unreadable")
        assert problem["facts"]["log"] == "orders"
        assert problem["facts"]["position"] == POISON_AT
        after = {"from": problem["facts"]["after"]}
        page = (await client.get(f"{log}/records", params=after)).json()
        assert [each["value"] for each in page["records"]] == ["3"]
        lines = (
            await client.get(f"{log}/records", headers={"Accept": "application/x-ndjson"})
        ).text.splitlines()
        assert len(lines) == 3
        assert "batch-unreadable" in lines[-1]
        async with client.stream("GET", f"{log}/subscribe", params={"from": 0}) as stream:
            names = [line async for line in stream.aiter_lines() if line.startswith("event: ")]
        assert names[-1] == "event: ended"
        assert names.count("event: deliver") == 2


async def _by_shell(url: str) -> None:
    read = await asyncio.create_subprocess_exec(
        *ANABRANCH,
        "read",
        "orders",
        env={**bare(), "ANABRANCH_URL": url},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, error = await read.communicate()
    assert read.returncode == Exit.DAMAGE
    assert b"goes on at 3" in error
    assert b"0" in out
