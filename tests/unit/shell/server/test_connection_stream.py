"""Connections over real sockets: bytes in any pieces, and what a machine keeps of them."""

import asyncio
import io
import random
import socket
import struct
from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest
import uvloop
from tests.unit.shell.nodes import Puppet, until

from anabranch.core.bolt.protocol.codec import encode_request, replies
from anabranch.core.bolt.protocol.messages import Append, Appended, Hello, Read, Records, Welcome
from anabranch.core.errors import BadFrame
from anabranch.core.limits import KIB, MIB, Limits
from anabranch.core.machine import Effect, Event, Gone, Received, Reply, Request, Requests
from anabranch.core.types import LogId
from anabranch.core.wire.frames import HEADER
from anabranch.shell.authority.shared import SharedToken
from anabranch.shell.runtime.clock import Clock
from anabranch.shell.runtime.driver import Host
from anabranch.shell.server.engines import bolt_service
from anabranch.shell.server.frame_server import FrameServer
from anabranch.shell.telemetry.log import Log

LOG = LogId(1)
LIMITS = Limits(connection_bytes_max=128 * KIB, read_bytes_max=256 * KIB)
LOOPS = pytest.mark.parametrize(
    "loop", [asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"]
)


class Broker(Puppet):
    """Answers each append with its number, once it is told to; keeps every batch as it came."""

    def __init__(self) -> None:
        super().__init__()
        self.batches: list[Any] = []
        self.rule = self._take
        self.read_bytes = 0
        """What a read is answered with."""

    def _take(self, event: Event) -> Sequence[Effect]:
        match event:
            case Requests(tokens, messages):
                return [
                    effect
                    for each in zip(tokens, messages, strict=True)
                    for effect in self._take(Request(*each))
                ]
            case Received("the test", held):
                return [effect for each in held for effect in self._take(each)]
            case Request(token, Append(batch=batch)):
                self.batches.append(batch)
                return [Reply(token, Appended(len(self.batches) - 1))]
            case Request(token, Read()):
                batch = bytes(self.read_bytes)
                return [Reply(token, Records([], [batch], 0, 0, 0, 0))]
            case _:
                return []

    def answer_all(self, host: Host) -> None:
        """What it has been asked, and from here on what it will be."""
        held, self.events, self.rule = self.events, [], self._take
        host.post("broker", Received("the test", held))


class Home:
    def __init__(self, limits: Limits) -> None:
        clock = Clock()
        log = Log(clock.now, stream=io.StringIO())
        self.broker = Broker()
        self.host = Host("c", None, None, now=clock.now, log=log)
        self.host.start({"broker": self.broker})
        self.server = FrameServer(limits)
        self.server.serve(
            bolt_service(
                self.host,
                "broker",
                limits,
                cluster="c",
                version="1",
                authority=SharedToken(None),
            )
        )
        self.port = 0

    @property
    def held(self) -> tuple[int, int, int]:
        gauges = self.server.budgets.gauges()
        return gauges.connections, gauges.request_bytes, gauges.reply_bytes

    async def dial(self) -> socket.socket:
        """Greeted; small buffers, so that what isn't read soon blocks the server."""
        dialed = socket.socket()
        dialed.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 * KIB)
        dialed.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        dialed.setblocking(False)
        loop = asyncio.get_running_loop()
        await loop.sock_connect(dialed, ("127.0.0.1", self.port))
        await loop.sock_sendall(dialed, b"".join(encode_request(1, Hello(1, "test"))))
        [(_, welcome)] = await hear(dialed, 1)
        assert isinstance(welcome, Welcome)
        return dialed


async def hear(dialed: socket.socket, count: int) -> list[tuple[int, Any]]:
    reader, heard = replies(), list[tuple[int, Any]]()
    while len(heard) < count:
        data = await asyncio.get_running_loop().sock_recv(dialed, 64 * KIB)
        assert data, f"the server has hung up after {heard}"
        heard += reader.feed(data)
    return heard


@asynccontextmanager
async def home(limits: Limits = LIMITS) -> AsyncGenerator[Home]:
    found = Home(limits)
    found.port = await found.server.start("127.0.0.1", 0)
    yield found
    await found.server.stop()
    await found.host.stop()
    assert found.held == (0, 0, 0), "whoever has left holds nothing"


def run(
    scene: Callable[[], Coroutine[Any, Any, None]],
    loop: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop,
) -> None:
    with asyncio.Runner(loop_factory=loop) as runner:
        runner.run(asyncio.wait_for(scene(), 60))


def appends_of(contents: Sequence[bytes]) -> bytes:
    return b"".join(
        part
        for number, content in enumerate(contents, 2)
        for part in encode_request(number, Append(LOG, content))
    )


@LOOPS
def test_what_a_machine_keeps_of_a_stream_stays_as_it_came(
    loop: Callable[[], asyncio.AbstractEventLoop],
) -> None:
    """Small and large frames in pieces that fall anywhere, while everything before is still held:
    a view of a buffer that is used again would show here.
    """
    chance = random.Random(7)
    sizes = [chance.choice([0, 1, 30, 330, 4_200, 65_600, 200_000]) for _ in range(120)]
    contents = [chance.randbytes(size) for size in sizes]
    stream = appends_of(contents)

    async def scene() -> None:
        async with home() as here:
            dialed = await here.dial()
            heard = asyncio.ensure_future(hear(dialed, len(contents)))
            at = 0
            while at < len(stream):
                size = chance.choice([1, 11, 12, 13, 700, 4_096, 65_536, 300_000])
                await asyncio.get_running_loop().sock_sendall(dialed, stream[at : at + size])
                at += size
            answers = [(n + 2, Appended(n)) for n in range(len(contents))]
            assert await heard == answers
            assert list(map(bytes, here.broker.batches)) == contents
            for batch in here.broker.batches:
                owner = memoryview(memoryview(batch).obj)
                assert owner.nbytes < len(batch) + 64, "a small batch keeps no large buffer alive"
            dialed.close()

    run(scene, loop)


def test_frames_cut_at_every_byte_are_the_frames_that_were_sent() -> None:
    contents = [b"", b"a", bytes(range(40))]
    stream = appends_of(contents)

    async def scene() -> None:
        async with home() as here:
            loop = asyncio.get_running_loop()
            for cut in range(1, len(stream)):
                dialed = await here.dial()
                before = here.server.counters.bytes_in
                await loop.sock_sendall(dialed, stream[:cut])
                await until(lambda before=before, cut=cut: _came(here, before + cut))
                await loop.sock_sendall(dialed, stream[cut:])
                await hear(dialed, len(contents))
                dialed.close()
            assert here.broker.batches == contents * (len(stream) - 1)

    run(scene)


def _came(here: Home, bytes_in: int) -> bool:
    return here.server.counters.bytes_in >= bytes_in


def test_an_oversized_frame_ends_its_connection_and_no_other() -> None:
    async def scene() -> None:
        async with home() as here:
            loop = asyncio.get_running_loop()
            dialed, other = await here.dial(), await here.dial()
            length = LIMITS.frame_bytes_max + 1
            await loop.sock_sendall(dialed, HEADER.pack(length, 2, 0, 0, 2) + bytes(100))
            [(request, refused)] = await hear(dialed, 1)
            assert (request, refused.code) == (0, BadFrame.code)
            assert await loop.sock_recv(dialed, 1) == b""
            await loop.sock_sendall(other, appends_of([b"still here"]))
            assert await hear(other, 1) == [(2, Appended(0))]
            dialed.close()
            other.close()

    run(scene)


def test_a_slow_reader_stops_its_own_requests_and_nobody_elses() -> None:
    """What it leaves unfetched is bounded; once it reads, all is answered."""
    reads = [encode_request(n, Read(LOG, 0, 1, 256 * KIB)) for n in range(2, 102)]

    async def scene() -> None:
        async with home() as here:
            here.broker.read_bytes = 256 * KIB
            loop = asyncio.get_running_loop()
            dialed, other = await here.dial(), await here.dial()
            await loop.sock_sendall(dialed, b"".join(part for read in reads for part in read))
            await until(lambda: here.server.counters.bytes_out > 256 * KIB)
            await loop.sock_sendall(other, appends_of([b"x"]))
            await hear(other, 1)
            asked = [each for each in here.broker.events if isinstance(each, Request)]
            assert len(asked) < 20, "the others wait until there is room for their answers"
            assert here.held[2] <= 8 * MIB
            heard = await hear(dialed, len(reads))
            assert sorted(request for request, _ in heard) == list(range(2, 102))
            dialed.close()
            other.close()

    run(scene)


def test_a_connection_lost_in_the_midst_of_a_write_leaves_nothing_behind() -> None:
    reads = [encode_request(n, Read(LOG, 0, 1, 256 * KIB)) for n in range(2, 40)]

    async def scene() -> None:
        async with home() as here:
            here.broker.read_bytes = 256 * KIB
            loop = asyncio.get_running_loop()
            dialed = await here.dial()
            await loop.sock_sendall(dialed, b"".join(part for read in reads for part in read))
            await until(lambda: here.server.counters.bytes_out > 256 * KIB)
            # Reset, not closed in order: what is written from here on fails.
            dialed.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            dialed.close()
            await until(lambda: here.server.gauges.connections == 0)
            assert here.held == (0, 0, 0)
            gone = [each for each in here.broker.events if isinstance(each, Gone)]
            assert len(gone) == 1, "the machine is told once what nobody waits for"
            other = await here.dial()
            await loop.sock_sendall(other, appends_of([b"x"]))
            assert await hear(other, 1) == [(2, Appended(0))]
            other.close()

    run(scene)


def test_a_sender_without_answers_is_stopped_at_the_bound_and_goes_on_once_they_come() -> None:
    """Appends that aren't answered are held; the socket isn't read past connection_bytes_max."""
    count = 1_000

    async def scene() -> None:
        async with home() as here:
            here.broker.rule = lambda _: ()
            loop = asyncio.get_running_loop()
            dialed = await here.dial()
            sending = asyncio.ensure_future(
                loop.sock_sendall(dialed, appends_of([bytes(16 * KIB)] * count))
            )
            await until(lambda: here.held[1] >= LIMITS.connection_bytes_max)
            taken = here.server.counters.bytes_in
            for _ in range(100):
                await asyncio.sleep(0)
            assert here.server.counters.bytes_in == taken
            assert taken <= LIMITS.connection_bytes_max + 512 * KIB
            assert not sending.done()
            here.broker.answer_all(here.host)
            heard = await hear(dialed, count)
            assert [request for request, _ in heard] == list(range(2, 2 + count))
            await sending
            dialed.close()

    run(scene)
