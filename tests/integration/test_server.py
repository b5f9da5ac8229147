"""The real server on loopback: what it refuses, what that costs, and what it never costs."""

import asyncio
import json
import os
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.integration.wire import Wire, Wires

from anabranch.apps.settings import Settings
from anabranch.apps.up import Embedded, Endpoint, serve
from anabranch.core.bolt.broker.broker import Broker
from anabranch.core.bolt.protocol import codec
from anabranch.core.bolt.protocol.clients import BOLT
from anabranch.core.bolt.protocol.commands import Description, Done
from anabranch.core.bolt.protocol.messages import (
    Append,
    Appended,
    ClientMessage,
    Confirmed,
    CreateLog,
    Delivered,
    Describe,
    Hello,
    Read,
    Records,
    Subscribe,
    Survey,
    Trim,
    Welcome,
)
from anabranch.core.bolt.protocol.queries import Census
from anabranch.core.errors import AnabranchError, DataDirLocked, Unavailable
from anabranch.core.errors.refused import Refused
from anabranch.core.limits import Limits
from anabranch.core.machine import Effects, Event, Request
from anabranch.core.records.origins import deliveries
from anabranch.core.records.record import Record, encode
from anabranch.core.types import LogId
from anabranch.core.wire import frames
from anabranch.core.wire.session import Cancel, Credit
from anabranch.shell.server.local import Local

NOW = 1_700_000_000_000
FOR_EVER_MS = 60_000


def batch(*values: bytes) -> bytes:
    return encode([Record(value) for value in values], now=NOW)


class Served(Wires):
    def __init__(self, endpoint: Endpoint) -> None:
        super().__init__(int(endpoint.frames.rpartition(":")[2]))
        self.endpoint = endpoint


@asynccontextmanager
async def serving(settings: Settings, **more: Any) -> AsyncGenerator[Served]:
    stop = asyncio.Event()
    ready: asyncio.Future[Endpoint] = asyncio.get_running_loop().create_future()
    server = asyncio.ensure_future(serve(settings, ready.set_result, stop=stop, **more))
    await asyncio.wait((server, ready), return_when=asyncio.FIRST_COMPLETED)
    if server.done():
        await server
    served = Served(ready.result())
    try:
        yield served
    finally:
        await served.close()
        stop.set()
        await server


def run(scene: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(scene, 60))


def in_memory(limits: Limits | None = None, **given: Any) -> Settings:
    return Settings(memory=True, port=0, http_port=0, limits=limits or Limits(), **given)


async def created(wire: Wire, name: str = "orders") -> LogId:
    reply = await wire.call(CreateLog(name, os.urandom(16)))
    assert isinstance(reply, Description)
    return reply.id


async def values(wire: Wire, log: LogId, start: int = 0) -> list[bytes | None]:
    reply = await wire.call(Read(log, start, 10_000, 1 << 20))
    assert isinstance(reply, Records)
    return [record.value for *_, record in deliveries(reply.runs, reply.batches)]


async def tail(wire: Wire, log: LogId) -> int:
    reply = await wire.call(Describe(log))
    assert isinstance(reply, Description)
    return reply.tail


def test_a_client_is_welcomed_with_the_limits() -> None:
    async def scene() -> None:
        async with serving(in_memory(Limits(record_bytes_max=1_000), cluster="here")) as served:
            wire = await served.connect()
            welcome = await wire.call(Hello(1, "test"))
            assert isinstance(welcome, Welcome)
            assert (welcome.version, welcome.cluster) == (1, "here")
            assert welcome.record_bytes_max == 1_000
            assert await wire.refusal(Hello(1, "again")) == "bad-request"
            assert isinstance(await wire.call(Survey()), Census)

    run(scene())


@pytest.mark.parametrize(
    ("first", "code"),
    [
        (Hello(2, "later"), "version-mismatch"),
        (Hello(1, "no token"), "unauthorized"),
        (Hello(1, "wrong token", "secret "), "unauthorized"),
        (Hello(1, "odd token", "sécret"), "unauthorized"),
        (Survey(), "bad-frame"),
    ],
)
def test_who_does_not_say_hello_properly_is_told_why_and_left(
    first: ClientMessage, code: str
) -> None:
    async def scene() -> None:
        async with serving(in_memory(token="secret")) as served:
            wire = await served.connect()
            wire.say(first)
            wire.say(Hello(1, "too late", "secret"))
            _, refused = await wire.hear()
            assert isinstance(refused, Refused)
            assert refused.code == code
            assert await wire.left()
            assert await served.greeted("secret")

    run(scene())


def test_who_says_nothing_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scene() -> None:
        monkeypatch.setattr("anabranch.shell.server.arrival.HANDSHAKE_S", 0.02)
        async with serving(in_memory()) as served:
            silent, slow = await served.connect(), await served.connect()
            slow.raw(b"\0\0")
            assert await silent.left()
            assert await slow.left()

    run(scene())


@pytest.mark.parametrize(
    "noise",
    [
        b"GET / HTTP/1.1\r\nHost: here\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        bytes(200),
        b"\xff" * 5_000,
        frames.HEADER.pack(Limits().frame_bytes_max - 3, codec.APPEND, 0, 0, 1),
    ],
)
def test_noise_is_refused_by_name_and_harms_nobody_else(noise: bytes) -> None:
    async def scene() -> None:
        async with serving(in_memory()) as served:
            wire = await served.greeted()
            log = await created(wire)
            for other in (await served.connect(), await served.greeted()):
                other.raw(noise + bytes(20))
                request, refused = await other.hear()
                assert request == frames.CONNECTION
                assert isinstance(refused, Refused)
                assert refused.code == "bad-frame"
                assert await other.left()
            assert await wire.call(Append(log, batch(b"a"))) == Appended(0)

    run(scene())


def test_a_bad_request_costs_only_itself() -> None:
    async def scene() -> None:
        async with serving(in_memory()) as served:
            wire = await served.greeted()
            log = await created(wire)
            good = batch(b"a", b"b")
            flipped = bytearray(good)
            flipped[-1] ^= 1
            huge = (1 << 64) - 1
            assert await wire.refusal(Append(log, bytes(flipped))) == "corrupt-batch"
            assert await wire.refusal(Append(log, good[:-1])) == "corrupt-batch"
            assert await wire.refusal(Append(log, b"")) == "corrupt-batch"
            assert await wire.refusal(Append(LogId(99), good)) == "unknown-log"
            assert await wire.refusal(Append(LogId(huge), good)) == "unknown-log"
            assert (
                await wire.refusal(Append(log, batch(bytes((1 << 20) + 1)))) == "record-too-large"
            )
            assert await wire.refusal(Describe("no such log")) == "unknown-log"
            assert await wire.refusal(Read(log, 5, 1, 1)) == "out-of-range"
            assert await wire.refusal(Read(log, huge, 1, 1)) == "bad-request"
            assert await wire.refusal(Read(LogId(99), 0, 1, 1)) == "unknown-log"
            assert await wire.refusal(CreateLog("od d/name", bytes(16))) == "bad-name"
            wire.raw(frames.HEADER.pack(9, codec.CONTROL, 0, 0, 77) + b"\xc1")
            request, refused = await wire.hear()
            assert request == 77
            assert isinstance(refused, Refused)
            assert await wire.call(Append(log, good)) == Appended(0)
            assert await values(wire, log) == [b"a", b"b"]

    run(scene())


def test_a_truncated_frame_leaves_nothing_behind() -> None:
    async def scene() -> None:
        async with serving(in_memory()) as served:
            wire, other = await served.greeted(), await served.greeted()
            log = await created(wire)
            whole = b"".join(codec.encode_request(9, Append(log, batch(bytes(5_000)))))
            other.raw(whole[:-1])
            await other.drain()
            await other.close()
            assert await wire.call(Append(log, batch(b"a"))) == Appended(0)
            assert await tail(wire, log) == 1

    run(scene())


def test_a_request_number_in_use_is_refused_and_one_that_was_cancelled_is_free() -> None:
    async def scene() -> None:
        async with serving(in_memory()) as served:
            wire = await served.greeted()
            log = await created(wire)
            waiting = b"".join(codec.encode_request(500, Read(log, 0, 1, 100, FOR_EVER_MS)))
            wire.raw(waiting + waiting)
            assert (await wire.hear())[0] == 500
            wire.say(Cancel(500))
            wire.raw(waiting)
            assert await wire.call(Append(log, batch(b"a"))) == Appended(0)
            request, records = await wire.hear()
            assert request == 500
            assert isinstance(records, Records)

    run(scene())


def test_pipelined_requests_are_all_answered_past_every_bound() -> None:
    async def scene() -> None:
        small = Limits(connection_bytes_max=20_000)
        async with serving(in_memory(small)) as served:
            wire = await served.greeted()
            log = await created(wire)
            one = batch(bytes(3_000))
            sent = [wire.say(Append(log, one)) for _ in range(200)]
            heard = [await wire.hear() for _ in sent]
            assert [request for request, _ in heard] == sent
            assert [reply for _, reply in heard] == [Appended(n) for n in range(200)]
            sent = [wire.say(Read(log, n, 100, 1 << 20)) for n in range(100)]
            heard = [await wire.hear() for _ in sent]
            assert sorted(request for request, _ in heard) == sent
            assert all(isinstance(reply, Records) for _, reply in heard)

    run(scene())


def test_many_clients_append_at_once_and_every_record_is_there_once() -> None:
    async def scene() -> None:
        async with serving(in_memory()) as served:
            first = await served.greeted()
            log = await created(first)
            wires = await asyncio.gather(*(served.greeted() for _ in range(150)))

            async def write(wire: Wire, number: int) -> list[int]:
                replies = [
                    await wire.call(Append(log, batch(f"{number}/{n}".encode()))) for n in range(5)
                ]
                return [reply.position or 0 for reply in replies if isinstance(reply, Appended)]

            positions = await asyncio.gather(*map(write, wires, range(150)))
            assert sorted(p for places in positions for p in places) == list(range(750))
            written = await values(first, log)
            for number, places in enumerate(positions):
                assert [written[p] for p in places] == [f"{number}/{n}".encode() for n in range(5)]

    run(scene())


def test_one_connection_too_many_is_turned_away() -> None:
    async def scene() -> None:
        async with serving(in_memory(Limits(connections_max=2))) as served:
            first, second = await served.greeted(), await served.greeted()
            third = await served.connect()
            _, refused = await third.hear()
            assert isinstance(refused, Refused)
            assert refused.code == "overloaded"
            assert await third.left()
            await first.close()
            assert await served.greeted()
            assert isinstance(await second.call(Survey()), Census)

    run(scene())


def test_a_subscriber_is_pushed_to_within_its_credit() -> None:
    async def scene() -> None:
        async with serving(in_memory()) as served:
            wire, writer = await served.greeted(), await served.greeted()
            log = await created(wire)
            subscription = wire.say(Subscribe(log, 0, credit_bytes=1))
            one = batch(b"x" * 1_000)
            for n in range(3):
                assert await writer.call(Append(log, one)) == Appended(n)
            got = 0
            while got < 3:
                request, pushed = await wire.hear()
                assert request == subscription
                if isinstance(pushed, Delivered):
                    assert not pushed.speculative
                    got += sum(run.count for run in pushed.runs)
                    wire.say(Credit(subscription, sum(map(len, pushed.batches))))
                else:
                    assert isinstance(pushed, Confirmed)
            wire.say(Cancel(subscription))
            assert await tail(wire, log) == 3

    run(scene())


def test_stopping_answers_what_has_begun_and_the_data_is_there_again(tmp_path: Path) -> None:
    async def scene() -> None:
        settings = Settings(data=str(tmp_path / "data"), port=0, http_port=-1)
        stop = asyncio.Event()
        ready: asyncio.Future[Endpoint] = asyncio.get_running_loop().create_future()
        server = asyncio.ensure_future(serve(settings, ready.set_result, stop=stop))
        served = Served(await ready)
        announced = tmp_path / "data" / "endpoint"
        assert json.loads(announced.read_text())["frames"] == served.endpoint.frames
        wire, reader = await served.greeted(), await served.greeted()
        log = await created(wire)
        reader.say(Read(log, 0, 1, 100, FOR_EVER_MS))
        for n in range(50):
            wire.say(Append(log, batch(str(n).encode())))
        await wire.hear()
        stop.set()
        assert [(await wire.hear())[1] for _ in range(49)] == [Appended(n) for n in range(1, 50)]
        assert await wire.left()
        await server
        await served.close()
        assert not announced.exists()
        async with serving(settings) as again:
            wire = await again.greeted()
            assert await values(wire, log) == [str(n).encode() for n in range(50)]
            assert await wire.call(Trim(log, 10, bytes(16))) == Done()

    run(scene())


def test_what_stands_in_the_way_of_starting_is_said(tmp_path: Path) -> None:
    async def scene() -> None:
        settings = Settings(data=str(tmp_path), port=0, http_port=-1)
        async with serving(settings) as served:
            with pytest.raises(DataDirLocked):
                await serve(settings)
            with pytest.raises(Unavailable, match=r"address already in use"):
                await serve(Settings(memory=True, port=served.port, http_port=-1))

    run(scene())


def test_a_machine_that_fails_ends_the_server_and_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    step = Broker.step

    def fails(self: Broker, now: int, event: Event) -> Effects:
        assert not isinstance(event, Request) or event.message != Survey(), "can't be"
        return step(self, now, event)

    async def scene() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda *_: None)
        monkeypatch.setattr(Broker, "step", fails)
        ready: asyncio.Future[Endpoint] = asyncio.get_running_loop().create_future()
        server = asyncio.ensure_future(serve(in_memory(), ready.set_result, stop=asyncio.Event()))
        served = Served(await ready)
        wire, bystander = await served.greeted(), await served.greeted()
        wire.say(Survey())
        with pytest.raises(AnabranchError, match=r"broker-0 failed: AssertionError.*can't be"):
            await server
        assert await wire.left()
        assert await bystander.left()
        await served.close()

    run(scene())


def test_an_application_is_served_beside_it_with_calls_and_metrics() -> None:
    def app(embedded: Embedded) -> Callable[..., Coroutine[Any, Any, None]]:
        local = Local(embedded.host, embedded.broker, BOLT)

        async def respond(scope: dict[str, Any], _: Any, send: Any) -> None:
            if scope["type"] != "http":
                return
            census = await local.call(Survey())
            assert isinstance(census, Census)
            body = embedded.metrics() if scope["path"] == "/metrics" else census.cluster.encode()
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": body})

        return respond

    async def scene() -> None:
        async with serving(in_memory(cluster="here"), app=app) as served:
            wire = await served.greeted()
            await wire.call(Append(await created(wire), batch(b"a")))
            async with httpx.AsyncClient(base_url=f"http://{served.endpoint.http}") as client:
                assert (await client.get("/")).text == "here"
                metrics = (await client.get("/metrics")).text
            assert "anabranch_broker_appends_total 1.0" in metrics
            assert "anabranch_server_connections 1.0" in metrics
            assert "process_resident_memory_bytes" in metrics

    run(scene())
