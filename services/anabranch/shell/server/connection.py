"""One client's connection, of any engine: requests in, replies out, within bounds.

What a turn answers is written at its end, at once. Past `connection_bytes_max` of unanswered
requests the socket isn't read. Past `ANSWERS` times that of replies to come, requests that change
nothing wait; past as much of windows, new subscriptions get the smallest. A client that leaves
twice as much unfetched is disconnected. `Budgets` bound all connections together. While an
authority finds out whether the client may do what it asks next, nothing more is read: what it sent
keeps its order.
"""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, Any

from anabranch.core.errors import (
    AnabranchError,
    BadFrame,
    BadRequest,
    Overloaded,
    Unauthenticated,
    Unavailable,
)
from anabranch.core.errors.refused import Refused
from anabranch.core.limits import KIB
from anabranch.core.machine import Buffer
from anabranch.core.wire.client_protocol import ReplySize
from anabranch.core.wire.frames import CONNECTION
from anabranch.core.wire.numbers import fault_in
from anabranch.core.wire.session import Cancel, Credit
from anabranch.shell.authority.gate import Gate
from anabranch.shell.peers.connection import write_all
from anabranch.shell.server.budgets import Share
from anabranch.shell.server.service import Service

if TYPE_CHECKING:
    from anabranch.shell.server.frame_server import FrameServer

ANSWERS = 4
"""Bytes of replies a connection may have coming, in units of `connection_bytes_max`."""

_WRITE_BYTES_HIGH = 256 * KIB
"""Past so much unsent the socket isn't read either."""
_REQUEST_BYTES = 64
"""What a request is counted as, beside its batch."""
_QUESTION_BYTES = 512
"""What a question is counted as that may have to wait for room: about what noting it takes."""


def address_of(transport: asyncio.Transport) -> str:
    """Of the other side."""
    peer = transport.get_extra_info("peername")
    return f"{peer[0]}:{peer[1]}" if peer else "somebody"


class Connection(asyncio.Protocol):
    """From the client's hello on, which was accepted."""

    def __init__(
        self,
        server: "FrameServer",
        service: Service,
        transport: asyncio.Transport,
        share: Share,
        hello: Any,
    ) -> None:
        self._server = server
        self.service = service
        self._transport = transport
        self._limits = limits = server.limits
        self._share = share
        share.hand_to(self)
        self._protocol = protocol = service.protocol
        self._append, self._pushed = protocol.append, protocol.pushed
        self._encode = protocol.codec.encode_reply
        self._completions = service.completions
        self._repeated = service.repeated
        self._append_limits = service.append_limits
        self._reader = protocol.codec.requests(limits.frame_bytes_max)
        self._answer_bytes_max = max(ANSWERS * limits.connection_bytes_max, limits.read_bytes_max)
        self._token: str | None = hello.token
        authority = service.authority
        who = authority.principal(self._token)
        self._seat = service.seat(self, protocol.trace(hello), who)
        self._gate = (
            Gate(authority, service.rights, self._token, self) if authority.selective else None
        )
        self._finding: asyncio.Task[None] | None = None
        self._behind: list[tuple[int, Any]] = []
        self._open: dict[int, int] = {}
        self._open_bytes = 0
        self._open_bytes_max = limits.connection_bytes_max
        self._questions: dict[int, int] = {}
        self._answer_bytes = 0
        self._held: dict[int, tuple[Any, ReplySize]] = {}
        self._out: list[Buffer] = []
        self._writable = True
        self._reads = True
        self._finishing = False
        transport.set_write_buffer_limits(_WRITE_BYTES_HIGH)

    def start(self, request: int, rest: bytes) -> None:
        """Answer the hello, and take what came behind it."""
        self._say(request, self.service.welcome)
        if rest:
            self._read(rest)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._finding is not None:
            self._finding.cancel()
        if self._gate is not None:
            self._gate.close()
        self._seat.leave(list(self._open))
        self.service.vacate(self._seat)
        self._open.clear()
        self._held.clear()
        self._share.leave(self._reader)
        self._server.leave(self)

    def data_received(self, data: bytes) -> None:
        self._server.counters.bytes_in += len(data)
        self._read(data)

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

    def answer(self, request: int, message: Any) -> None:
        """A reply from the machine; one that nobody waits for any more is dropped."""
        kind = message.__class__
        if kind in self._pushed:
            if request not in self._open:
                return
            if kind is self._protocol.delivered:
                self._share.delivered(request, sum(map(len, message.batches)))
        elif not self._close(request):
            return
        if kind is Refused:
            self._server.refused(self.client, request, message)
        if self._completions and kind in self._completions:
            message = self._completions[kind](message)
        try:
            if message.__class__ in self._repeated:
                self._out += self._repeated.encode(request, message)
            else:
                self._out += self._encode(request, message)
        except OverflowError:
            error = BadRequest("a number in this request", "it is too large for any log")
            self._out += self._encode(request, Refused.of(error))

    def answer_many(self, requests: Sequence[int], messages: Sequence[Any]) -> None:
        """Final replies, one to each of these requests."""
        opened = self._open
        plain = opened.keys() >= set(requests) and self._questions.keys().isdisjoint(requests)
        if not plain:
            for request, message in zip(requests, messages, strict=True):
                self.answer(request, message)
            return
        self._open_bytes -= sum(map(opened.pop, requests))
        self._out.append(self._protocol.codec.encode_replies(requests, messages))

    def flush(self) -> None:
        """Write what the turn has answered, and take up what that makes room for."""
        transport = self._transport
        if self._out:
            out, self._out = self._out, []
            if not transport.is_closing():
                self._server.counters.bytes_out += write_all(transport, out)
        unsent = transport.get_write_buffer_size()
        # Nearly always all of it is with the kernel by now.
        if unsent or self._share.has_unfetched:
            if unsent > 2 * self._answer_bytes_max:
                self._server.counters.left_unread += 1
                transport.abort()
            self._share.count_unfetched(unsent)
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
        """End it now; what it holds of the budgets is free at once."""
        self._share.leave(self._reader)
        self._transport.abort()

    def lapse(self) -> None:
        self._server.counters.left_lapsed += 1
        self._transport.close()

    def revoke(self, request: int, error: AnabranchError) -> None:
        """The client isn't allowed any more what it was allowed when this request began."""
        asked = request not in self._held
        if not self._close(request):
            return
        if asked:
            self._seat.refer(request, Cancel(request))
        self._refuse(request, error)

    @property
    def client(self) -> str:
        """The address that the client connects from."""
        return address_of(self._transport)

    def _read(self, data: bytes) -> None:
        frames = self._reader.feed(data)
        if self._finding is None:
            self._take_all(frames)
        else:
            self._behind += frames
        if self._reader.broken is not None:
            self._refuse(CONNECTION, self._reader.broken)
            self._transport.close()
        self._throttle()

    def _take_all(self, frames: list[tuple[int, Any]]) -> None:
        """In order; appends that follow each other go to the machine together."""
        if self._transport.is_closing():
            return
        append, gate, opened = self._append, self._gate, self._open
        limited = self._append_limits is not None and self._append_limits.active
        requests: list[int] = []
        appends: list[Any] = []
        for at, (request, message) in enumerate(frames, 1):
            if type(message) is append and (gate is None or gate.knows(message)):
                size = _REQUEST_BYTES + len(message.batch)
                if request in opened or not request or self._finishing:
                    self._open_request(request, size)  # which refuses it
                    continue
                if limited and self._refuse_over_quota(request, message):
                    continue
                opened[request] = size
                self._open_bytes += size
                requests.append(request)
                appends.append(message)
                continue
            if appends:
                self._seat.ask_many(requests, appends)
                requests, appends = [], []
            self._take(request, message)
            if self._transport.is_closing():
                return
            if self._finding is not None:
                self._behind += frames[at:]
                return
        if appends:
            self._seat.ask_many(requests, appends)

    def _take(self, request: int, message: Any) -> None:
        match message:
            case BadFrame():
                self._refuse(request, message)
            case Credit(other, consumed):
                if other in self._open:
                    came = self._share.consumed(other, consumed)
                    self._seat.refer(request, Credit(other, came))
            case Cancel(other):
                asked = other not in self._held
                if self._close(other) and asked:
                    self._seat.refer(request, message)
            case _ if type(message) is self._protocol.hello:
                self._refuse(request, BadRequest("hello", "it is said once, at the beginning"))
            case _ if (fault := fault_in(message)) is not None:
                self._refuse(request, fault)
            case _ if self._gate is None:
                self._begin(request, message)
            case _:
                self._begin_if_allowed(self._gate, request, message)

    def _begin(self, request: int, message: Any) -> None:
        protocol = self._protocol
        if type(message) is self._append:
            if self._open_request(request, _REQUEST_BYTES + len(message.batch)):
                if self._refuse_over_quota(request, message):
                    self._close(request)
                else:
                    self._seat.ask_many([request], [message])
            return
        coming = protocol.reply_size(message, self._limits)
        if coming is not None:
            if self._open_request(request, _QUESTION_BYTES):
                self._questions[request] = 0
                self._held[request] = message, self._repeated.expected(message, coming)
                self._ask_held()
            return
        if type(message) is protocol.announced and self._refuse_over_quota(request, message):
            return
        if not self._open_request(request, _REQUEST_BYTES):
            return
        if type(message) in protocol.commands:
            crowded = self._share.remember(self.service.authority.now())
            if crowded is not None:
                self._close(request)
                self._refuse(request, crowded)
                return
            self._log_command(message)
        self._seat.ask(request, message)

    def _refuse_over_quota(self, request: int, append: Any) -> bool:
        """True if this append was refused because its log has used up its quota."""
        limits = self._append_limits
        if limits is None:
            return False
        if type(append) is self._append:
            exceeded = limits.refuse(append.batch)
        else:
            id = append.id.producer, append.id.epoch, append.id.sequence
            exceeded = limits.refuse_announced(id, append.size, append.count)
        if exceeded is not None:
            self._server.counters.over_quota += 1
            self._refuse(request, exceeded)
        return exceeded is not None

    def _begin_if_allowed(self, gate: Gate, request: int, message: Any) -> None:
        def begin() -> None:
            self._begin(request, message)
            if type(message) is self._protocol.subscribe and request in self._open:
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

    def _log_command(self, message: Any) -> None:
        """Where clients have names."""
        service, log = self.service, self._server.requests
        if log is not None and service.authority.selective:
            who = service.authority.principal(self._token)
            command = str(message.__struct_config__.tag)
            log.allowed(self.client, who, command, service.rights.needs(message))

    def _object(self, request: int, error: AnabranchError) -> None:
        """A client whose token isn't valid any more may connect again with another."""
        self._server.refused(self.client, request, Refused.of(error))
        if isinstance(error, Unauthenticated):
            self.lapse()
        else:
            self._refuse(request, error)

    def _open_request(self, request: int, size: int) -> bool:
        """False if it was refused."""
        if request in self._open or request == CONNECTION:
            reason = "choose a number from 1 on that no unanswered request has"
            self._refuse(request, BadRequest(f"request {request}", reason))
            return False
        if self._finishing:
            self._refuse(request, Unavailable("this server", "it is stopping"))
            return False
        self._open[request] = size
        self._open_bytes += size
        return True

    def _ask_held(self) -> None:
        """As many questions as there is room for replies, which unsent ones take up too."""
        held = self._held
        while held and self._writable and self._answer_bytes < self._answer_bytes_max:
            request, (message, coming) = next(iter(held.items()))
            if type(message) is self._protocol.subscribe:
                del held[request]
                self._subscribe(request, message)
                continue
            if not self._share.reserve(request, coming.shared):
                return
            del held[request]
            self._questions[request] = coming.own
            self._answer_bytes += coming.own
            self._seat.ask(request, message)

    def _subscribe(self, request: int, message: Any) -> None:
        limits, protocol = self._limits, self._protocol
        most = min(limits.subscription_bytes, self._answer_bytes_max - self._share.window_bytes)
        try:
            window = self._share.subscribe(request, protocol.window(message), most)
        except Overloaded as error:
            if self._close(request):
                self._refuse(request, error)
            return
        self._seat.ask(request, protocol.with_window(message, window))

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
        bound = self._open_bytes_max
        free = self._share.count_requests(self._open_bytes, self._reader)
        free = free and self._writable and self._finding is None
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

    def _say(self, request: int, message: Any) -> None:
        self._transport.write(b"".join(self._encode(request, message)))

    def _refuse(self, request: int, error: AnabranchError) -> None:
        self._server.counters.refused += 1
        self._say(request, Refused.of(error))
