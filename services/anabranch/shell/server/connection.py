"""One client's connection: frames in, frames out, and never more in memory than was agreed.

What a turn answers is written at its end, at once. Past `connection_bytes_max` of unanswered
requests the socket isn't read. Past `ANSWERS` times that of answers to come, reads and listings
wait; past as much of windows, new subscriptions get the smallest. A client that leaves twice as
much unfetched is left. `Budgets` bound all connections together. While it has to be found out who a
client is, or whether it may do what it asks next, no more is read: what it sent keeps its order.
"""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, cast

from anabranch.core.bolt.protocol.codec import encode_replies, encode_reply, requests
from anabranch.core.bolt.protocol.messages import (
    PROTOCOL_VERSION,
    Append,
    ClientMessage,
    Compare,
    Confirmed,
    Delivered,
    Failed,
    Guarded,
    Hello,
    ListLogs,
    Once,
    Read,
    ReadCursors,
    Redeem,
    ServerMessage,
    Subscribe,
)
from anabranch.core.bolt.protocol.rights import BoltRights
from anabranch.core.errors import (
    AnabranchError,
    BadFrame,
    BadRequest,
    Overloaded,
    Unauthenticated,
    Unavailable,
    VersionMismatch,
)
from anabranch.core.errors.refused import Refused
from anabranch.core.limits import KIB
from anabranch.core.machine import Buffer
from anabranch.core.wire.frames import CONNECTION
from anabranch.core.wire.numbers import fault_in
from anabranch.core.wire.session import Cancel, Credit
from anabranch.shell.authority.gate import Gate
from anabranch.shell.peers.connection import write_all
from anabranch.shell.server.budgets import HELLO_BYTES_MAX, FirstFrame, Share
from anabranch.shell.server.reply_sizes import Question, reply_bytes, shared_bytes

if TYPE_CHECKING:
    from anabranch.shell.runtime.driver import Seat
    from anabranch.shell.server.frame_server import FrameServer

HANDSHAKE_S = 10.0
"""A connection that hasn't said hello by then is closed."""
ANSWERS = 4
"""Bytes of answers a connection may have coming, in units of `connection_bytes_max`."""

_WRITE_BYTES_HIGH = 256 * KIB
"""Past so much unsent the socket isn't read either."""
_REQUEST_BYTES = 64
"""What a request is counted as, beside its batch."""
_PUSHED = frozenset({Delivered, Confirmed, Failed})
"""Replies after which more will come."""


class Connection(asyncio.Protocol):
    def __init__(self, server: "FrameServer") -> None:
        self._server = server
        self._limits = server.limits
        self._answer_bytes_max = max(
            ANSWERS * server.limits.connection_bytes_max, server.limits.read_bytes_max
        )
        self._share = Share(server.budgets, self)
        self._first = FirstFrame()
        self._reader = requests(HELLO_BYTES_MAX)
        self._transport: asyncio.Transport
        self._handshake: asyncio.TimerHandle
        self._seat: Seat | None = None
        self._gate: Gate | None = None
        self._finding: asyncio.Task[None] | None = None
        self._behind: list[tuple[int, ClientMessage | BadFrame]] = []
        self._open: dict[int, int] = {}
        self._open_bytes = 0
        self._questions: dict[int, int] = {}
        self._answer_bytes = 0
        self._held: dict[int, Question] = {}
        self._out: list[Buffer] = []
        self._writable = True
        self._reads = True
        self._finishing = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # or what other loops have for it
        self._transport.set_write_buffer_limits(_WRITE_BYTES_HIGH)
        self._handshake = asyncio.get_running_loop().call_later(HANDSHAKE_S, self._leave_silent)
        crowded = self._share.enter()
        if crowded is not None and self._server.make_room():
            crowded = self._share.enter()
        self._server.enter(self, welcome=crowded is None)
        if crowded is not None:
            self._dismiss(CONNECTION, crowded)

    def connection_lost(self, exc: Exception | None) -> None:
        self._handshake.cancel()
        if self._finding is not None:
            self._finding.cancel()
        if self._gate is not None:
            self._gate.close()
        if self._seat is not None:
            self._seat.leave(list(self._open))
            self._server.vacated(self._seat)
        self._held.clear()
        self._share.leave(self._reader)
        self._server.leave(self)

    def data_received(self, data: bytes) -> None:
        self._server.counters.bytes_in += len(data)
        if self._seat is None:
            data = self._meet(data)
            if not data:
                return
        frames = self._reader.feed(data)
        if self._finding is None:
            self._take_all(frames)
        else:
            self._behind += frames
        if self._reader.broken is not None:
            self._dismiss(CONNECTION, self._reader.broken)
        self._throttle()

    def pause_writing(self) -> None:
        self._writable = False
        self._throttle()

    def resume_writing(self) -> None:
        self._writable = True
        self._share.count_unfetched(self._transport.get_write_buffer_size())
        self.resume()

    def resume(self) -> None:
        """Others have given something back."""
        self._ask_held()
        self._throttle()

    def answer(self, request: int, message: ServerMessage) -> None:
        """A reply from the machine; one that nobody waits for any more is dropped."""
        if type(message) in _PUSHED:
            if request not in self._open:
                return
            if type(message) is Delivered:
                self._share.delivered(request, sum(map(len, message.batches)))
        elif not self._close(request):
            return
        if type(message) is Refused:
            self._server.failed(self._client, request, message)
        self._out += self._encoded(request, message)

    def answer_many(self, requests: Sequence[int], messages: Sequence[ServerMessage]) -> None:
        """Final replies, one to each of these requests."""
        opened = self._open
        plain = opened.keys() >= set(requests) and self._questions.keys().isdisjoint(requests)
        if not plain:
            for request, message in zip(requests, messages, strict=True):
                self.answer(request, message)
            return
        self._open_bytes -= sum(map(opened.pop, requests))
        self._out.append(encode_replies(requests, messages))

    def flush(self) -> None:
        """Write what the turn has answered, and take up what that makes room for."""
        out, self._out = self._out, []
        if out and not self._transport.is_closing():
            self._server.counters.bytes_out += write_all(self._transport, out)
        if self._transport.get_write_buffer_size() > 2 * self._answer_bytes_max:
            self._server.counters.left_unread += 1
            self._transport.abort()
        self._share.count_unfetched(self._transport.get_write_buffer_size())
        if self._held:
            self._ask_held()
        self._throttle()
        if self._finishing:
            self.finish()

    def finish(self) -> None:
        """The server stops: close once nothing that could have changed a log is unanswered."""
        self._finishing = True
        if len(self._open) <= len(self._questions):
            self._transport.close()

    def abort(self) -> None:
        self._share.leave(self._reader)
        self._transport.abort()

    @property
    def _client(self) -> str:
        """Where it connects from."""
        peer = self._transport.get_extra_info("peername")
        return f"{peer[0]}:{peer[1]}" if peer else "somebody"

    def _meet(self, data: bytes) -> bytes:
        """Take the hello and no more; returns what came behind it, if that is answered."""
        frame = self._first.feed(data)
        if frame is not None:
            self._take_all(self._reader.feed(frame))
            if self._reader.broken is not None:
                self._dismiss(CONNECTION, self._reader.broken)
        if self._transport.is_closing():
            return b""
        if self._seat is not None:
            return self._first.rest()
        if self._first.crowded is not None:
            self._dismiss(CONNECTION, self._first.crowded)
        else:
            self._throttle()
        return b""

    def _take_all(self, frames: list[tuple[int, ClientMessage | BadFrame]]) -> None:
        """In order; appends that follow each other go to the machine together."""
        if self._transport.is_closing():
            return
        requests: list[int] = []
        appends: list[Append] = []
        gate = self._gate
        for at, (request, message) in enumerate(frames, 1):
            if (
                type(message) is Append
                and self._seat is not None
                and (gate is None or gate.knows(message))
            ):
                if self._open_request(request, _REQUEST_BYTES + len(message.batch)):
                    requests.append(request)
                    appends.append(message)
                continue
            if appends:
                self._pass_on(requests, appends)
                requests, appends = [], []
            self._take(request, message)
            if self._transport.is_closing():
                return
            if self._finding is not None:
                self._behind += frames[at:]
                return
            gate = self._gate
        if appends:
            self._pass_on(requests, appends)

    def _pass_on(self, requests: list[int], appends: list[Append]) -> None:
        assert self._seat is not None
        self._seat.ask_many(requests, appends)

    def _take(self, request: int, message: ClientMessage | BadFrame) -> None:
        match message:
            case BadFrame():
                self._refuse(request, message)
            case _ if self._seat is None:
                self._greet(request, message)
            case Hello():
                self._refuse(request, BadRequest("hello", "it is said once, at the beginning"))
            case Credit(other, consumed):
                if other in self._open:
                    came = self._share.consumed(other, consumed)
                    self._seat.refer(request, Credit(other, came))
            case Cancel(other):
                asked = other not in self._held
                if self._close(other) and asked:
                    self._seat.refer(request, message)
            case _ if (fault := fault_in(message)) is not None:
                self._refuse(request, fault)
            case _ if self._gate is None:
                self._begin(request, message)
            case _:
                self._begin_if_allowed(self._gate, request, message)

    def _begin(self, request: int, message: ClientMessage) -> None:
        assert self._seat is not None
        size = len(message.batch) if type(message) is Append else 0
        if not self._open_request(request, _REQUEST_BYTES + size):
            return
        match message:
            case Read() | Subscribe() | Redeem() | ListLogs() | Compare() | ReadCursors():
                self._questions[request] = 0
                self._held[request] = message
                self._ask_held()
            case _:
                now = self._server.authority.now()
                error = self._share.remember(now) if isinstance(message, Once | Guarded) else None
                if error is None:
                    self._seat.ask(request, message)
                elif self._close(request):
                    self._refuse(request, error)

    def _begin_if_allowed(self, gate: Gate, request: int, message: ClientMessage) -> None:
        def begin() -> None:
            self._begin(request, message)
            if isinstance(message, Subscribe) and request in self._open:
                gate.watch(request, message)

        try:
            allowed = gate.allows(message)
        except AnabranchError as error:
            self._object(request, error)
            return
        if allowed:
            begin()
        else:
            self._find_out(gate.find(message), begin, lambda error: self._object(request, error))

    def _find_out(
        self,
        question: Coroutine[None, None, None],
        then: Callable[[], None],
        otherwise: Callable[[AnabranchError], None],
    ) -> None:
        """Until it is known, what comes waits."""

        def found(task: asyncio.Task[None]) -> None:
            self._finding = None
            if task.cancelled() or self._transport.is_closing():
                return
            error = task.exception()
            if error is None:
                then()
            elif isinstance(error, AnabranchError):
                otherwise(error)
            else:
                self._transport.abort()
                raise error
            behind, self._behind = self._behind, []
            self._take_all(behind)
            early = self._first.rest()
            if early and not self._transport.is_closing():
                self.data_received(early)
            self._throttle()

        self._finding = asyncio.get_running_loop().create_task(question)
        self._finding.add_done_callback(found)

    def _object(self, request: int, error: AnabranchError) -> None:
        """Whose token isn't good any more may have another for the next connection."""
        if isinstance(error, Unauthenticated):
            self.lapse()
        else:
            self._refuse(request, error)

    def lapse(self) -> None:
        self._server.counters.left_lapsed += 1
        self._transport.close()

    def revoke(self, request: int, error: AnabranchError) -> None:
        """What was allowed when it began isn't any more."""
        asked = request not in self._held
        if not self._close(request):
            return
        if asked and self._seat is not None:
            self._seat.refer(request, Cancel(request))
        self._refuse(request, error)

    def _greet(self, request: int, message: ClientMessage) -> None:
        match message:
            case Hello(version) if version != PROTOCOL_VERSION:
                self._dismiss(request, VersionMismatch(version, PROTOCOL_VERSION))
            case Hello(token=token):
                self._admit(request, message, token)
            case _:
                self._dismiss(request, BadFrame("the first one must say hello"))

    def _admit(self, request: int, hello: Hello, token: str | None) -> None:
        authority = self._server.authority

        def welcome() -> None:
            self._handshake.cancel()
            self._server.met(self)
            crowded = self._share.become(authority.principal(token))
            if crowded is not None:
                turn_away(crowded)
                return
            self._reader = requests(self._limits.frame_bytes_max)
            self._seat = self._server.seat(self, hello.traceparent)
            if authority.selective:
                self._gate = Gate(authority, BoltRights(), token, self)
            self._say(request, self._server.welcome)

        def turn_away(error: AnabranchError) -> None:
            self._dismiss(request, error)

        try:
            known = authority.known(token)
        except AnabranchError as error:
            turn_away(error)
            return
        if known:
            welcome()
        else:
            peer = self._transport.get_extra_info("peername")
            address = str(peer[0]) if peer else ""
            self._find_out(authority.admit(token, address), welcome, turn_away)

    def _open_request(self, request: int, size: int) -> bool:
        """False if it was refused."""
        if request in self._open:
            self._refuse(request, BadRequest(f"request {request}", "its number is still in use"))
            return False
        if self._finishing:
            self._refuse(request, Unavailable("this server", "it is stopping"))
            return False
        self._open[request] = size
        self._open_bytes += size
        return True

    def _ask_held(self) -> None:
        """As many questions as there is room for answers, which unsent ones take up too."""
        held = self._held
        while held and self._writable and self._answer_bytes < self._answer_bytes_max:
            request = next(iter(held))
            message = held[request]
            if isinstance(message, Subscribe):
                del held[request]
                self._subscribe(request, message)
                continue
            if not self._share.reserve(request, shared_bytes(message, self._limits)):
                return
            del held[request]
            self._ask(request, message)

    def _subscribe(self, request: int, message: Subscribe) -> None:
        limits = self._limits
        most = min(limits.subscription_bytes, self._answer_bytes_max - self._share.window_bytes)
        try:
            window = self._share.subscribe(request, message.credit_bytes, most)
        except Overloaded as error:
            if self._close(request):
                self._refuse(request, error)
            return
        assert self._seat is not None
        self._seat.ask(request, Subscribe(message.log, message.start, message.speculative, window))

    def _ask(self, request: int, message: Question) -> None:
        coming = reply_bytes(message, self._limits)
        self._questions[request] = coming
        self._answer_bytes += coming
        assert self._seat is not None
        self._seat.ask(request, message)

    def _close(self, request: int) -> bool:
        """The request is done with; False if it wasn't open."""
        size = self._open.pop(request, None)
        if size is None:
            return False
        self._open_bytes -= size
        if self._questions:
            self._answer_bytes -= self._questions.pop(request, 0)
            self._held.pop(request, None)
            self._share.release(request)
        if self._gate is not None:
            self._gate.forget(request)
        return True

    def _throttle(self) -> None:
        bound = self._limits.connection_bytes_max
        free = self._writable and self._finding is None
        if self._seat is not None:
            free = self._share.count_requests(self._open_bytes, self._reader) and free
        if self._reads and free and self._open_bytes < bound:
            return
        if self._transport.is_closing():
            return
        reads = free and self._open_bytes < (bound if self._reads else bound // 2)
        if reads and not self._reads:
            self._transport.resume_reading()
        elif self._reads and not reads:
            self._transport.pause_reading()
        self._reads = reads

    def _say(self, request: int, message: ServerMessage) -> None:
        self._transport.write(b"".join(encode_reply(request, message)))

    def _refuse(self, request: int, error: AnabranchError) -> None:
        self._server.counters.refused += 1
        self._say(request, Refused.of(error))

    def _dismiss(self, request: int, error: AnabranchError) -> None:
        """Say why, and close."""
        self._refuse(request, error)
        self._transport.close()

    def _leave_silent(self) -> None:
        self._server.counters.left_silent += 1
        self._transport.abort()

    def _encoded(self, request: int, message: ServerMessage) -> list[Buffer]:
        try:
            return encode_reply(request, message)
        except OverflowError:
            error = BadRequest("a number in this request", "it is too large for any log")
            return encode_reply(request, Refused.of(error))
