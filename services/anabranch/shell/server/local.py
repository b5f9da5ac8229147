"""A caller inside the process: what a client is to a connection, without the connection."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Sequence
from typing import Any

from anabranch.core.errors import restore
from anabranch.core.errors.refused import Refused
from anabranch.core.wire.client_protocol import ClientProtocol
from anabranch.core.wire.session import Credit
from anabranch.shell.runtime.driver import Host


class Local:
    """Any number of calls and streams at once. A refusal is raised as the error that it is.

    Messages are those of the engine whose client protocol is given.
    """

    def __init__(self, host: Host, node: str, protocol: ClientProtocol) -> None:
        self._seat = host.seat(node, self)
        self._protocol = protocol
        self._last = 0
        self._calls: dict[int, asyncio.Future[Any]] = {}
        self._streams: dict[int, _Stream] = {}

    async def call(self, message: Any) -> Any:
        """One request, one reply. Whoever stops waiting is forgotten by the machine too."""
        request = self._next()
        self._calls[request] = future = asyncio.get_running_loop().create_future()
        self._seat.ask(request, message)
        try:
            reply = await future
        finally:
            if self._calls.pop(request, None) is not None:
                self._seat.forget([request])
        if isinstance(reply, Refused):
            raise restore(reply.code, reply.message, reply.facts)
        return reply

    async def stream(self, message: Any) -> AsyncGenerator[Any]:
        """What is pushed, until the caller closes the generator or the subscription is refused.

        Credit is given back as records are taken: a slow caller holds no more than it asked for.
        """
        request = self._next()
        self._streams[request] = stream = _Stream()
        self._seat.ask(request, message)
        try:
            while True:
                pushed = await stream.next()
                if isinstance(pushed, Refused):
                    self._streams.pop(request, None)
                    raise restore(pushed.code, pushed.message, pushed.facts)
                yield pushed
                if type(pushed) is self._protocol.delivered:
                    taken = sum(map(len, pushed.batches))
                    self._seat.refer(self._next(), Credit(request, taken))
        finally:
            if self._streams.pop(request, None) is not None:
                self._seat.forget([request])

    def close(self) -> None:
        """Everything still waiting is cancelled."""
        self._seat.leave([*self._calls, *self._streams])
        calls = list(self._calls.values())
        self._calls.clear()
        for future in calls:
            future.cancel()

    def answer(self, request: int, message: Any) -> None:
        stream = self._streams.get(request)
        if stream is not None:
            pushed = isinstance(message, Refused) or type(message) in self._protocol.pushed
            assert pushed, f"a subscription is never told {message}"
            stream.push(message)
            return
        future = self._calls.pop(request, None)
        if future is not None and not future.done():
            future.set_result(message)

    def answer_many(self, requests: Sequence[int], messages: Sequence[Any]) -> None:
        for request, message in zip(requests, messages, strict=True):
            self.answer(request, message)

    def _next(self) -> int:
        """A request number that is not in use; they come round after four thousand million."""
        while True:
            self._last = (self._last + 1) & 0xFFFFFFFF
            if self._last not in self._calls and self._last not in self._streams:
                return self._last

    def flush(self) -> None:
        """Futures pass on their results by themselves."""


class _Stream:
    """What was pushed and not yet taken, by one reader."""

    __slots__ = ("_pushed", "_wanted")

    def __init__(self) -> None:
        self._pushed: deque[Any] = deque()
        self._wanted: asyncio.Future[None] | None = None

    def push(self, message: Any) -> None:
        self._pushed.append(message)
        if self._wanted is not None and not self._wanted.done():
            self._wanted.set_result(None)

    async def next(self) -> Any:
        while not self._pushed:
            self._wanted = asyncio.get_running_loop().create_future()
            await self._wanted
        return self._pushed.popleft()
