"""A node's clients: requests in, replies out, and never more in memory than was agreed.

No task per request: what a turn answers is written at its end, at once. Appends that come together
reach the machine as one `Requests`; everything else as a `Request` each. Past
`connection_bytes_max` of unanswered requests, or while what was answered isn't fetched, the socket
isn't read. A client that leaves eight times as much unfetched is left. `Budgets` bound all
connections together.
"""

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial

from msgspec.structs import replace

from anabranch.core.belfast.protocol.codec import encode_reply, requests
from anabranch.core.belfast.protocol.messages import (
    BELFAST_VERSION,
    Append,
    Confirmed,
    Delivered,
    Directory,
    Eras,
    Failed,
    Hello,
    Subscribe,
    ToClient,
    ToServer,
    Welcome,
)
from anabranch.core.budget import EVERYBODY
from anabranch.core.errors import (
    AnabranchError,
    BadFrame,
    BadRequest,
    Overloaded,
    Unavailable,
    VersionMismatch,
    WrongCluster,
)
from anabranch.core.errors.refused import Refused
from anabranch.core.limits import KIB, Limits
from anabranch.core.machine import Buffer
from anabranch.core.wire.frames import CONNECTION
from anabranch.core.wire.numbers import fault_in
from anabranch.core.wire.session import Cancel, Credit
from anabranch.shell.authority.shared import SharedToken
from anabranch.shell.authority.tokens import Tokens
from anabranch.shell.net.delay import Delay
from anabranch.shell.peers.connection import set_up, write_all
from anabranch.shell.runtime.driver import Host
from anabranch.shell.server.budgets import Budgets, Share
from anabranch.shell.server.frame_server import DRAIN_S, ServerCounters, ServerGauges
from anabranch.shell.telemetry.log import Log
from anabranch.shell.telemetry.request_log import Complaints

UNFETCHED = 8
"""Bytes of answers a client may leave unfetched, in units of `connection_bytes_max`."""
_WRITE_BYTES_HIGH = 256 * KIB
"""Past so much unsent the socket isn't read either."""
_REQUEST_BYTES = 64
"""What a request is counted as, beside its batch."""

_PUSHED = frozenset({Eras, Delivered, Confirmed, Failed})
"""Replies after which more will come."""


class Clients:
    """Of the machine that a host runs under this address."""

    def __init__(  # noqa: PLR0913  # most have a default and a name
        self,
        host: Host,
        address: str,
        cluster: str,
        limits: Limits,
        log: Log,
        *,
        release: str = "",
        token: Tokens | str | None = None,
        delay_us: int = 0,
        budgets: Budgets | None = None,
    ) -> None:
        self.budgets = budgets or Budgets(limits)
        self.host = host
        self.hosts: Mapping[str, str] = {}
        """Where other nodes were met last, for the clients to know."""
        self.address = address
        self.limits = limits
        self.delay = Delay(delay_us)
        self.complaints = Complaints(log)
        self._token = SharedToken(token)
        self._connections: dict[ClientConnection, None] = {}
        self._empty = asyncio.Event()
        self._empty.set()
        self.counters = ServerCounters()
        self.gauges = ServerGauges()
        self._welcome = Welcome(
            BELFAST_VERSION,
            cluster,
            address,
            release,
            limits.batch_bytes_max,
            limits.batch_records_max,
        )

    async def stop(self) -> None:
        """Take no new requests, answer what has begun, then close."""
        for connection in list(self._connections):
            connection.finish()
        # Machines that have stopped answer nothing more.
        patience_s = 0 if self.host.failed.done() else DRAIN_S
        try:
            await asyncio.wait_for(self._empty.wait(), patience_s)
        except TimeoutError:
            for connection in list(self._connections):
                connection.abort()
            await self._empty.wait()
        self.delay.stop()

    def welcome(self, transport: asyncio.Transport, hello: Hello) -> None:
        """Somebody has dialed this node and says hello."""
        try:
            self._check(hello)
        except AnabranchError as refusal:
            self.dismiss(transport, refusal)
            return
        connection = ClientConnection(self, transport)
        transport.set_protocol(connection)
        transport.set_write_buffer_limits(_WRITE_BYTES_HIGH)
        set_up(transport.get_extra_info("socket"))
        self._connections[connection] = None
        self._empty.clear()
        self.counters.accepted += 1
        self.gauges.connections += 1
        transport.write(b"".join(encode_reply(CONNECTION, self._welcome)))

    def dismiss(self, transport: asyncio.Transport, refusal: AnabranchError) -> None:
        """Say why, and close."""
        self.counters.turned_away += 1
        transport.write(b"".join(encode_reply(CONNECTION, Refused.of(refusal))))
        transport.close()

    def leave(self, connection: "ClientConnection") -> None:
        del self._connections[connection]
        self.gauges.connections -= 1
        if not self._connections:
            self._empty.set()

    def _check(self, hello: Hello) -> None:
        if hello.version != BELFAST_VERSION:
            raise VersionMismatch(hello.version, BELFAST_VERSION)
        if hello.cluster != self._welcome.cluster:
            raise WrongCluster(f"node {self.address}", self._welcome.cluster, hello.cluster)
        self._token.known(hello.token)
        connections = self.budgets.connections
        if connections.room(EVERYBODY) <= 0:
            raise Overloaded("connections", connections.limit, "connections_max")


class ClientConnection(asyncio.Protocol):
    def __init__(self, clients: Clients, transport: asyncio.Transport) -> None:
        self._clients = clients
        self._transport = transport
        self._reader = requests(clients.limits.frame_bytes_max)
        self._seat = clients.host.seat(clients.address, self)
        self._share = Share(clients.budgets, self)
        self._share.enter(EVERYBODY)
        self._open: dict[int, int] = {}
        self._open_bytes = 0
        self._out: list[Buffer] = []
        self._writable = True
        self._reads = True
        self._finishing = False

    def connection_lost(self, exc: Exception | None) -> None:
        self._seat.leave(list(self._open))
        self._open.clear()
        self._share.leave(self._reader)
        self._clients.leave(self)

    def data_received(self, data: bytes) -> None:
        self._clients.counters.bytes_in += len(data)
        frames = self._reader.feed(data)
        if frames:
            self._clients.delay.after(partial(self._take_all, frames))
        if self._reader.broken is not None:
            self._clients.dismiss(self._transport, self._reader.broken)
        self._throttle()

    def pause_writing(self) -> None:
        self._writable = False
        self._throttle()

    def resume_writing(self) -> None:
        self._writable = True
        self._share.count_unfetched(self._transport.get_write_buffer_size())
        self._throttle()

    def resume(self) -> None:
        """Others have given something back."""
        self._throttle()

    def answer(self, request: int, message: ToClient) -> None:
        """A reply from the machine; one that nobody waits for any more is dropped."""
        if type(message) in _PUSHED:
            if request not in self._open:
                return
            if type(message) is Delivered:
                self._share.delivered(request, sum(map(len, message.batches)))
        elif not self._close(request):
            return
        if type(message) is Refused:
            now_s = asyncio.get_running_loop().time()
            self._clients.complaints.note(self._client, request, message, now_s)
        elif type(message) is Directory:
            message = replace(message, hosts=dict(self._clients.hosts))
        self._out += encode_reply(request, message)

    def answer_many(self, requests: Sequence[int], messages: Sequence[ToClient]) -> None:
        for request, message in zip(requests, messages, strict=True):
            self.answer(request, message)

    def flush(self) -> None:
        """Write what the turn has answered, and take up what that makes room for."""
        out, self._out = self._out, []
        if out:
            self._clients.delay.after(partial(self._write, out))
        self._throttle()
        if self._finishing:
            self.finish()

    def finish(self) -> None:
        """The node stops: close once every append is answered. Subscriptions never are."""
        self._finishing = True
        if self._open_bytes <= _REQUEST_BYTES * len(self._open):
            self._clients.delay.after(self._transport.close)

    def abort(self) -> None:
        """Its share is free at once."""
        self._share.leave(self._reader)
        self._transport.abort()

    @property
    def _client(self) -> str:
        """Where it connects from."""
        peer = self._transport.get_extra_info("peername")
        return f"{peer[0]}:{peer[1]}" if peer else "somebody"

    def _take_all(self, frames: "Sequence[tuple[int, ToServer | BadFrame]]") -> None:
        """In order; appends that follow each other go to the machine together."""
        if self._transport.is_closing():
            return
        together: list[int] = []
        appends: list[Append] = []
        for request, message in frames:
            if type(message) is Append:
                if self._begin(request, _REQUEST_BYTES + len(message.batch)):
                    together.append(request)
                    appends.append(message)
                continue
            if appends:
                self._seat.ask_many(together, appends)
                together, appends = [], []
            self._take(request, message)
        if appends:
            self._seat.ask_many(together, appends)
        self._throttle()

    def _take(self, request: int, message: ToServer | BadFrame) -> None:
        match message:
            case BadFrame():
                self._refuse(request, message)
            case Hello():
                self._refuse(request, BadRequest("hello", "it is said once, at the beginning"))
            case Credit(other, consumed):
                if other in self._open:
                    came = self._share.consumed(other, consumed)
                    self._seat.refer(request, Credit(other, came))
            case Cancel(other):
                if self._close(other):
                    self._seat.refer(request, message)
            case _ if (fault := fault_in(message)) is not None:
                self._refuse(request, fault)
            case Subscribe():
                if self._begin(request, _REQUEST_BYTES):
                    self._subscribe(request, message)
            case _:
                if self._begin(request, _REQUEST_BYTES):
                    self._seat.ask(request, message)

    def _subscribe(self, request: int, message: Subscribe) -> None:
        most = self._clients.limits.subscription_bytes
        try:
            window = self._share.subscribe(request, message.window_bytes, most)
        except Overloaded as error:
            if self._close(request):
                self._refuse(request, error)
            return
        self._seat.ask(request, replace(message, window_bytes=window))

    def _begin(self, request: int, size: int) -> bool:
        """False if it was refused."""
        if request in self._open or request == CONNECTION:
            reason = "choose a number from 1 on that no unanswered request has"
            self._refuse(request, BadRequest(f"request {request}", reason))
            return False
        if self._finishing:
            self._refuse(request, Unavailable(f"node {self._clients.address}", "it is stopping"))
            return False
        self._open[request] = size
        self._open_bytes += size
        return True

    def _close(self, request: int) -> bool:
        """The request is done with; False if it wasn't open."""
        size = self._open.pop(request, None)
        if size is None:
            return False
        self._open_bytes -= size
        self._share.release(request)
        return True

    def _refuse(self, request: int, error: AnabranchError) -> None:
        self._clients.counters.refused += 1
        self._clients.delay.after(partial(self._write, encode_reply(request, Refused.of(error))))

    def _write(self, out: list[Buffer]) -> None:
        transport, clients = self._transport, self._clients
        if transport.is_closing():
            return
        clients.counters.bytes_out += write_all(transport, out)
        self._share.count_unfetched(transport.get_write_buffer_size())
        if transport.get_write_buffer_size() > UNFETCHED * clients.limits.connection_bytes_max:
            clients.counters.left_unread += 1
            transport.abort()

    def _throttle(self) -> None:
        """It is read again when half of what it asks is answered."""
        bound = self._clients.limits.connection_bytes_max
        free = self._share.count_requests(self._open_bytes, self._reader) and self._writable
        reads = free and self._open_bytes < (bound if self._reads else bound // 2)
        if reads == self._reads or self._transport.is_closing():
            return
        if reads:
            self._transport.resume_reading()
        else:
            self._transport.pause_reading()
        self._reads = reads
