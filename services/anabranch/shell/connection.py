"""One client's connection: frames in, frames out, and never more in memory than was agreed.

No task per request: what a turn answers is written at its end, at once. Bounds keep it small. Past
`connection_bytes_max` of unanswered requests the socket isn't read. Past `ANSWERS` times that of
answers to come, reads and listings wait their turn; past as much of windows, new subscriptions get
the smallest. A client that leaves twice as much unfetched is left.

While it has to be found out who a client is, or whether it may do what it asks next, nothing more
of it is read: what it sent keeps its order.
"""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, cast

from anabranch.core.bolt.commands import Refused
from anabranch.core.errors import (
    AnabranchError,
    BadFrame,
    BadRequest,
    Overloaded,
    Unauthenticated,
    Unavailable,
    VersionMismatch,
)
from anabranch.core.limits import KIB
from anabranch.core.machine import Buffer
from anabranch.core.wire.frames import CONNECTION, client_messages, encode_replies, encode_reply
from anabranch.core.wire.messages import (
    PROTOCOL_VERSION,
    Append,
    Cancel,
    ClientMessage,
    Compare,
    Confirmed,
    Credit,
    Delivered,
    Failed,
    Hello,
    ListLogs,
    Read,
    ReadCursors,
    Redeem,
    ServerMessage,
    Subscribe,
)
from anabranch.shell.authority.gate import Gate
from anabranch.shell.peerline import write_all

if TYPE_CHECKING:
    from anabranch.shell.driver import Seat
    from anabranch.shell.server import FrameServer

HANDSHAKE_S = 10.0
"""A connection that hasn't said hello by then is closed."""
ANSWERS = 4
"""Bytes of answers a connection may have coming, in units of `connection_bytes_max`."""

_WRITE_BYTES_HIGH = 256 * KIB
"""Past so much unsent the socket isn't read either."""
_REQUEST_BYTES = 64
"""What a request is counted as, beside its batch."""
_LISTING_BYTES = 256 * KIB
"""What the answer to a listing is counted as."""
_WINDOW_BYTES_MIN = 16 * KIB
"""What a subscription may have coming, however many there are."""

_PUSHED = frozenset({Delivered, Confirmed, Failed})
"""Replies after which more will come."""
_Question = Read | Subscribe | Redeem | ListLogs | Compare | ReadCursors
"""Changes nothing, may take long and may be answered at length."""


class Connection(asyncio.Protocol):
    def __init__(self, server: "FrameServer") -> None:
        self._server = server
        self._limits = server.limits
        self._answer_bytes_max = max(
            ANSWERS * server.limits.connection_bytes_max, server.limits.read_bytes_max
        )
        self._reader = client_messages(server.limits.frame_bytes_max)
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
        self._windows: dict[int, int] = {}
        self._window_bytes = 0
        self._held: dict[int, _Question] = {}
        self._out: list[Buffer] = []
        self._writable = True
        self._reads = True
        self._finishing = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # Other loops' transports offer the same, but aren't asyncio's.
        self._transport = cast("asyncio.Transport", transport)
        self._transport.set_write_buffer_limits(_WRITE_BYTES_HIGH)
        self._handshake = asyncio.get_running_loop().call_later(HANDSHAKE_S, self._leave_silent)
        if not self._server.enter(self):
            limit = self._limits.connections_max
            self._dismiss(CONNECTION, Overloaded("connections", limit, "connections_max"))

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
        self._server.leave(self)

    def data_received(self, data: bytes) -> None:
        self._server.counters.bytes_in += len(data)
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
        self._ask_held()
        self._throttle()

    def answer(self, request: int, message: ServerMessage) -> None:
        """A reply from the machine; one that nobody waits for any more is dropped."""
        if type(message) in _PUSHED:
            if request not in self._open:
                return
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
        self._transport.abort()

    @property
    def _client(self) -> str:
        """Where it connects from."""
        peer = self._transport.get_extra_info("peername")
        return f"{peer[0]}:{peer[1]}" if peer else "somebody"

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
            case Credit(other):
                if other in self._open:
                    self._seat.refer(request, message)
            case Cancel(other):
                asked = other not in self._held
                if self._close(other) and asked:
                    self._seat.refer(request, message)
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
                self._seat.ask(request, message)

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
            self._seat = self._server.seat(self, hello.traceparent)
            if authority.selective:
                self._gate = Gate(authority, token, self)
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
            self._ask(request, held.pop(request))

    def _ask(self, request: int, message: _Question) -> None:
        match message:
            case Subscribe(log, start, speculative, credit_bytes):
                window = min(
                    self._limits.subscription_bytes, self._answer_bytes_max - self._window_bytes
                )
                window = min(credit_bytes, max(window, _WINDOW_BYTES_MIN))
                message = Subscribe(log, start, speculative, window)
                self._windows[request] = window
                self._window_bytes += window
            case _:
                coming = self._coming(message)
                self._questions[request] = coming
                self._answer_bytes += coming
        assert self._seat is not None
        self._seat.ask(request, message)

    def _coming(self, message: _Question) -> int:
        match message:
            case Read(bytes_max=bytes_max):
                return max(0, min(bytes_max, self._limits.read_bytes_max))
            case ListLogs() | Compare() | ReadCursors():
                return _LISTING_BYTES
            case _:
                return 0

    def _close(self, request: int) -> bool:
        """The request is done with; False if it wasn't open."""
        size = self._open.pop(request, None)
        if size is None:
            return False
        self._open_bytes -= size
        if self._questions:
            self._answer_bytes -= self._questions.pop(request, 0)
            self._window_bytes -= self._windows.pop(request, 0)
            self._held.pop(request, None)
        if self._gate is not None:
            self._gate.forget(request)
        return True

    def _throttle(self) -> None:
        bound = self._limits.connection_bytes_max
        free = self._writable and self._finding is None
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
            # A client's own number near 2^64, and one more than it, named in a refusal.
            error = BadRequest("a number in this request", "it is too large for any log")
            return encode_reply(request, Refused.of(error))
