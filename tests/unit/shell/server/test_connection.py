"""A connection's bounds, on a transport that does nothing by itself."""

import asyncio
import gc
import struct
import tracemalloc
from collections.abc import Coroutine
from typing import Any

from anabranch.core.bolt.protocol import codec
from anabranch.core.bolt.protocol.commands import Receipt
from anabranch.core.bolt.protocol.messages import (
    Append,
    Appended,
    ClientMessage,
    Delivered,
    Hello,
    Read,
    Records,
    ServerMessage,
    Subscribe,
    Survey,
)
from anabranch.core.bolt.protocol.queries import Settled
from anabranch.core.errors import BadFrame
from anabranch.core.errors.refused import Refused
from anabranch.core.limits import KIB, Limits
from anabranch.core.machine import (
    Effects,
    Event,
    Gone,
    Received,
    Replies,
    Reply,
    Request,
    Requests,
    Token,
)
from anabranch.core.types import LogId, Nanoseconds
from anabranch.core.wire.session import Cancel, Credit
from anabranch.ports import Authority
from anabranch.shell.authority.shared import SharedToken
from anabranch.shell.journal.memory import MemoryJournal
from anabranch.shell.objects.memory import MemoryStore
from anabranch.shell.runtime.clock import Clock
from anabranch.shell.runtime.driver import Host
from anabranch.shell.server.arrival import Arrival
from anabranch.shell.server.connection import Connection
from anabranch.shell.server.engines import bolt_service
from anabranch.shell.server.frame_server import FrameServer
from anabranch.shell.telemetry.log import Log

LOG = LogId(1)
LIMITS = Limits(connection_bytes_max=10_000, read_bytes_max=8_000, subscription_bytes=30_000)
"""So that 40,000 bytes of answers may come."""


class Asked:
    """A machine that answers what it is told to."""

    def __init__(self) -> None:
        self.requests: list[tuple[Token, Any]] = []
        self.gone: list[Token] = []

    def start(self, now: Nanoseconds) -> Effects:
        return ()

    def step(self, now: Nanoseconds, event: Event) -> Effects:
        match event:
            case Request(token, message):
                self.requests.append((token, message))
            case Requests(tokens, messages):
                self.requests += zip(tokens, messages, strict=True)
            case Gone(tokens):
                self.gone += tokens
            case Received("several", answers):
                return (Replies(*map(tuple, zip(*answers, strict=True))),)
            case Received(_, answers):
                return tuple(Reply(token, message) for token, message in answers)
            case _:
                raise AssertionError(event)
        return ()


class Pipe(asyncio.Transport):
    def __init__(self) -> None:
        super().__init__()
        self.writes: list[bytes] = []
        self.reading = True
        self.aborted = False
        self.closed = False
        self.unsent = 0

    def write(self, data: Any) -> None:
        self.writes.append(bytes(data))

    def writelines(self, list_of_data: Any) -> None:
        self.writes += map(bytes, list_of_data)

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        assert high is not None

    def get_write_buffer_size(self) -> int:
        return self.unsent

    def pause_reading(self) -> None:
        assert self.reading
        self.reading = False

    def resume_reading(self) -> None:
        assert not self.reading
        self.reading = True

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        assert isinstance(protocol, Arrival | Connection)
        self.protocol = protocol

    def get_protocol(self) -> "Arrival | Connection":
        return self.protocol

    def is_closing(self) -> bool:
        return self.closed

    def close(self) -> None:
        self.closed = True

    def abort(self) -> None:
        self.closed = self.aborted = True


class Stage:
    def __init__(self, limits: Limits = LIMITS, authority: Authority | None = None) -> None:
        clock = Clock()
        log = Log(clock.now)
        self.machine = Asked()
        self.host = Host("c", MemoryJournal(), MemoryStore(), now=clock.now, log=log)
        self.host.start({"broker": self.machine})
        self.server = FrameServer(limits)
        self.server.serve(
            bolt_service(
                self.host,
                "broker",
                limits,
                cluster="c",
                version="0",
                authority=authority or SharedToken(None),
            )
        )
        self.pipe = Pipe()
        self.pipe.set_protocol(Arrival(self.server))
        self.pipe.get_protocol().connection_made(self.pipe)
        self._heard = codec.replies()
        self.say((9_999, Hello(1, "test", "token")))
        if authority is None:
            self.heard()

    def say(self, *requests: tuple[int, ClientMessage]) -> None:
        parts = [b for number, message in requests for b in codec.encode_request(number, message)]
        self.pipe.get_protocol().data_received(b"".join(parts))

    async def turn(self, *answers: tuple[Token, ServerMessage], how: str = "single") -> None:
        """The machine takes what was said, then gives these answers."""
        await asyncio.sleep(0)
        if answers:
            self.host.post("broker", Received(how, answers))
            await asyncio.sleep(0)

    def heard(self) -> list[tuple[int, ServerMessage | BadFrame]]:
        written = b"".join(self.pipe.writes)
        self.pipe.writes.clear()
        return self._heard.feed(written)

    @property
    def connection(self) -> Connection:
        protocol = self.pipe.get_protocol()
        assert isinstance(protocol, Connection)
        return protocol

    @property
    def asked(self) -> list[Any]:
        return [message for _, message in self.machine.requests]

    def token(self, index: int) -> Token:
        return self.machine.requests[index][0]


def run(scene: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(scene, 20))


def test_answers_of_a_turn_are_one_write() -> None:
    async def scene() -> None:
        stage = Stage()
        stage.say((1, Survey()), (2, Survey()), (3, Append(LOG, b"x")))
        await stage.turn()
        await stage.turn(*[(stage.token(n), Appended(n)) for n in range(3)])
        assert len(stage.pipe.writes) == 1
        assert stage.heard() == [(1, Appended(0)), (2, Appended(1)), (3, Appended(2))]
        assert stage.server.counters.bytes_out == 60

    run(scene())


def test_answers_given_together_are_those_given_one_by_one() -> None:
    """Also if some of the requests were given up, and some are of another kind."""

    async def said(how: str) -> list[tuple[int, ServerMessage | BadFrame]]:
        stage = Stage()
        appends = [(n, Append(LOG, b"x")) for n in range(1, 6)]
        stage.say(*appends[:3], (9, Read(LOG, 0, 1, 1)), *appends[3:], (10, Cancel(2)))
        await stage.turn()
        append_tokens = [token for token, asked in stage.machine.requests if type(asked) is Append]
        read_token = stage.token(3)
        answers: list[tuple[Token, ServerMessage]] = [
            (token, Appended(n << 40)) for n, token in enumerate(append_tokens)
        ]
        answers[3] = (answers[3][0], Appended(None, Receipt(LOG, 2, 3)))
        answers.append((read_token, Records([], [], 0, 0, 0, 0)))
        await stage.turn(*answers, how=how)
        return stage.heard()

    async def scene() -> None:
        together = await said("several")
        assert [request for request, _ in together] == [1, 3, 4, 5, 9]
        assert together == await said("single")

    run(scene())


def test_a_socket_is_not_read_while_too_much_is_unanswered() -> None:
    async def scene() -> None:
        stage = Stage()
        stage.say(*[(n, Append(LOG, bytes(1_000))) for n in range(1, 9)])
        assert stage.pipe.reading
        stage.say((9, Append(LOG, bytes(1_000))), (10, Append(LOG, bytes(1_000))))
        assert not stage.pipe.reading
        await stage.turn()
        assert len(stage.asked) == 10, "what came before it was stopped is taken"
        await stage.turn(*[(stage.token(n), Appended(n)) for n in range(5)])
        assert not stage.pipe.reading
        await stage.turn((stage.token(5), Appended(5)))
        assert stage.pipe.reading

    run(scene())


def test_a_socket_is_not_read_while_too_many_questions_wait() -> None:
    """They are small, but each is noted in several places until it is answered."""

    async def scene() -> None:
        stage = Stage()
        stage.say(*[(n, Read(LOG, 0, 1, 1)) for n in range(1, 20)])
        assert stage.pipe.reading
        stage.say((20, Read(LOG, 0, 1, 1)))
        assert not stage.pipe.reading

    run(scene())


def test_a_socket_is_not_read_while_answers_are_unsent() -> None:
    async def scene() -> None:
        stage = Stage()
        stage.connection.pause_writing()
        assert not stage.pipe.reading
        stage.connection.resume_writing()
        assert stage.pipe.reading

    run(scene())


def test_reads_wait_for_room_for_their_answers_and_nothing_else_does() -> None:
    async def scene() -> None:
        stage = Stage()
        reads = [Read(LOG, n, 1, 1 << 20) for n in range(8)]
        stage.say(*enumerate(reads, 1), (100, Survey()))
        await stage.turn()
        assert stage.asked == [*reads[:5], Survey()]
        stage.say((101, Cancel(7)))
        nothing = Records([], [], 0, 0, 0, 0)
        await stage.turn((stage.token(2), nothing))
        assert stage.heard()[-1] == (3, nothing)
        await stage.turn()
        assert stage.asked[6:] == [reads[5]]
        stage.connection.pause_writing()
        await stage.turn((stage.token(0), nothing), (stage.token(1), nothing))
        assert len(stage.asked) == 7, "unsent answers take up room"
        stage.connection.resume_writing()
        await stage.turn()
        assert stage.asked[7:] == [reads[7]]

    run(scene())


def test_a_window_is_what_was_asked_for_while_there_is_room() -> None:
    async def scene() -> None:
        stage = Stage()
        asked = (1_000, 1 << 20, 1 << 20, 1 << 20)
        subscriptions = [Subscribe(LOG, 0, credit_bytes=credit) for credit in asked]
        stage.say(*enumerate(subscriptions, 1))
        await stage.turn()
        windows = [message.credit_bytes for message in stage.asked]
        assert windows == [1_000, 30_000, 16 * KIB, 16 * KIB]
        pushed = Delivered([], [b"x"], False)
        for _ in range(2):
            await stage.turn((stage.token(0), pushed))
            assert stage.heard() == [(1, pushed)]
        stage.say((10, Credit(1, 1)), (11, Cancel(1)), (12, Credit(1, 1)))
        await stage.turn((stage.token(0), pushed))
        assert stage.heard() == [], "nothing follows a cancellation"
        token = stage.token(0)
        assert stage.asked[4:] == [Credit(token, 1), Cancel(token)]

    run(scene())


def test_credit_for_what_did_not_come_is_none() -> None:
    async def scene() -> None:
        stage = Stage()
        stage.say((1, Subscribe(LOG, 0, credit_bytes=100)))
        await stage.turn()
        stage.say((2, Credit(1, 1 << 40)))
        await stage.turn((stage.token(0), Delivered([], [b"x" * 30, b"x" * 20], False)))
        stage.say((3, Credit(1, 40)), (4, Credit(1, 1 << 40)), (5, Credit(1, -7)))
        await stage.turn()
        token = stage.token(0)
        assert stage.asked[1:] == [Credit(token, each) for each in (0, 40, 10, 0)]

    run(scene())


def test_who_does_not_fetch_answers_is_left() -> None:
    async def scene() -> None:
        stage = Stage()
        stage.say((1, Survey()), (2, Survey()))
        await stage.turn()
        stage.pipe.unsent = 80_000
        await stage.turn((stage.token(0), Appended(0)))
        assert not stage.pipe.aborted
        stage.pipe.unsent += 1
        await stage.turn((stage.token(1), Appended(0)))
        assert stage.pipe.aborted
        assert stage.server.counters.left_unread == 1

    run(scene())


def test_who_leaves_is_forgotten_with_all_that_was_asked() -> None:
    async def scene() -> None:
        stage = Stage()
        stage.say((1, Survey()), (2, Append(LOG, b"x")), (3, Survey()))
        await stage.turn()
        await stage.turn((stage.token(0), Appended(0)))
        stage.connection.connection_lost(None)
        await stage.turn((stage.token(1), Appended(0)))
        assert stage.machine.gone == [stage.token(1), stage.token(2)]
        assert stage.server.gauges.connections == 0
        assert len(stage.heard()) == 1

    run(scene())


def test_a_number_too_large_for_the_wire_is_refused_like_any_other() -> None:
    async def scene() -> None:
        stage = Stage()
        stage.say((1, Survey()))
        await stage.turn()
        await stage.turn((stage.token(0), Settled("orders", 1 << 64)))
        ((request, refused),) = stage.heard()
        assert request == 1
        assert isinstance(refused, Refused)
        assert refused.code == "bad-request"
        assert not stage.host.failed.done()

    run(scene())


def test_nothing_is_heard_after_a_dismissal() -> None:
    async def scene() -> None:
        stage = Stage()
        bad = b"".join(codec.encode_request(1, Survey())) + bytes(12)
        stage.connection.data_received(bad)
        stage.say((2, Survey()))
        await stage.turn()
        assert stage.pipe.closed
        assert stage.asked == [Survey()]

    run(scene())


def test_a_stopping_server_begins_nothing_and_waits_only_for_what_could_change_a_log() -> None:
    async def scene() -> None:
        stage = Stage()
        stage.say((1, Append(LOG, b"x")), (2, Read(LOG, 0, 1, 1, 1_000)))
        await stage.turn()
        stage.connection.finish()
        stage.say((3, Append(LOG, b"y")))
        ((request, refused),) = stage.heard()
        assert request == 3
        assert isinstance(refused, Refused)
        assert refused.code == "unavailable"
        assert not stage.pipe.closed
        await stage.turn((stage.token(0), Appended(0)))
        assert stage.heard() == [(1, Appended(0))]
        assert stage.pipe.closed

    run(scene())


def test_a_frame_that_is_broken_off_is_gone_with_its_connection() -> None:
    """Not only once a collector finds the cycles that connections are part of."""

    async def scene() -> None:
        stage = Stage()
        gc.disable()
        tracemalloc.start()
        try:
            before, _ = tracemalloc.get_traced_memory()
            begun = struct.pack(">IBBHI", 4_000_000, codec.APPEND, 0, 0, 1) + bytes(250_000)
            stage.connection.data_received(begun)
            del begun
            held, _ = tracemalloc.get_traced_memory()
            stage.connection.connection_lost(None)
            left, _ = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
            gc.enable()
        assert held - before > 240_000
        assert left - before < 100_000

    run(scene())
