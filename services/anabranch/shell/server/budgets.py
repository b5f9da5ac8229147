"""What all connections of a process share, whichever protocol they speak, and who waits for it.

Connections, HTTP requests and probes call this; the arithmetic is in `core/budget.py`. A connection
that finds no room for what it is about to receive or to ask waits, and is told when something was
given back.
"""

import asyncio
from dataclasses import dataclass
from typing import Any, Protocol

from anabranch.core.budget import EVERYBODY, Budget, Window
from anabranch.core.errors import BadFrame, Overloaded
from anabranch.core.limits import KIB, Limits
from anabranch.core.types import MS, Nanoseconds
from anabranch.core.wire.frames import HEADER, FrameReader
from anabranch.shell.runtime import allocator

_WAKE_S = 0.01
"""What is given back in this time is told of at once."""
_PEAK_BYTES = 64 << 20
"""Memory that was in use is returned to the system once a quarter of it is, and it was so much."""
_COMMANDS_PART = 8
"""A process lets in this part of the commands that the metadata remember: there are other brokers,
and each principal gets at most half of it.
"""


HELLO_BYTES_MAX = 4 * KIB
"""The first frame, and as much behind it before it is answered."""
_WINDOW_BYTES_MIN = 16 * KIB
"""What a subscription may have coming, however many there are."""
_WINDOW_PART = 8
"""A window takes at most this part of what is free, so that the next ones find some as well."""
_FRAME_S = 60.0
"""A large frame that hasn't come by then ends its connection: others wait for the memory."""
_UNFETCHED_MIN = KIB
"""Less than this in a connection's buffer isn't counted: it is gone at the turn's end."""
_LARGE_BYTES = 64 * KIB
"""A frame above this has that time; a smaller one comes with the next piece."""


class Waiter(Protocol):
    def resume(self) -> None:
        """There may be room; otherwise wait again."""
        ...

    def abort(self) -> None:
        """It has kept others waiting for too long."""
        ...


@dataclass(slots=True)
class BudgetGauges:
    connections: int = 0
    request_bytes: int = 0
    reply_bytes: int = 0
    subscriptions: int = 0
    waiting: int = 0


class Budgets:
    def __init__(self, limits: Limits, connections_max: int | None = None) -> None:
        self.connections = Budget(connections_max or limits.connections_max)
        self.requests = Budget(limits.request_bytes_max)
        """Bytes of requests that have come, or are about to, and aren't answered."""
        self.replies = Budget(limits.reply_bytes_max)
        """Bytes of replies that are asked for or not fetched yet, and windows of subscriptions."""
        self.subscriptions = Budget(limits.subscriptions_max)
        self.commands = Window(
            max(1, limits.requests_max // _COMMANDS_PART), limits.request_memory_min_ms * MS
        )
        self._waiting: dict[Waiter, None] = {}
        self._wakes: asyncio.TimerHandle | None = None
        self._peak = 0

    def gauges(self) -> BudgetGauges:
        return BudgetGauges(
            self.connections.used,
            self.requests.used,
            self.replies.used,
            self.subscriptions.used,
            len(self._waiting),
        )

    def wait(self, waiter: Waiter) -> None:
        self._waiting[waiter] = None
        self._peak = max(self._peak, self.requests.used + self.replies.used)

    def leave(self, waiter: Waiter) -> None:
        self._waiting.pop(waiter, None)

    def give(self, budget: Budget, who: str, amount: int) -> None:
        """Give back, and tell those who wait."""
        if amount:
            budget.give(who, amount)
            self._given(amount)

    def change_requests(self, who: str, more: int) -> bool:
        """Bytes of requests that have come, or are answered if negative; is there room for any?"""
        free = self.requests.change(who, more)
        if more < 0:
            self._given(-more)
        return free

    def _given(self, amount: int) -> None:
        used = self.requests.used + self.replies.used
        self._peak = max(self._peak, used + amount)
        large = self._peak > _PEAK_BYTES and 4 * used < self._peak
        if (large or self._waiting) and self._wakes is None:
            self._wakes = asyncio.get_running_loop().call_later(_WAKE_S, self._wake)

    def open_window(self, who: str, wanted: int, most: int) -> int:
        """Bytes that a new subscription may have coming; raises Overloaded if there is room for
        none.
        """
        if not self.subscriptions.take(who, 1):
            raise Overloaded("subscriptions", self.subscriptions.limit, "subscriptions_max")
        # Half is for windows that are as small as can be.
        free = self.replies.room(who) - self.replies.limit // 2
        free = min(free // _WINDOW_PART, most)
        window = min(wanted, max(free, _WINDOW_BYTES_MIN))
        if not self.replies.take(who, window):
            self.give(self.subscriptions, who, 1)
            raise Overloaded("windows of subscriptions", self.replies.limit, "reply_bytes_max")
        return window

    def close_window(self, who: str, window: int) -> None:
        self.give(self.subscriptions, who, 1)
        self.give(self.replies, who, window)

    def _wake(self) -> None:
        self._wakes = None
        waiting, self._waiting = self._waiting, {}
        for waiter in waiting:
            waiter.resume()
        if self._peak > _PEAK_BYTES and 4 * (self.requests.used + self.replies.used) < self._peak:
            self._peak = 0
            allocator.return_memory()


class Share:
    """What one connection has of the budgets of its process, until it leaves."""

    def __init__(self, budgets: Budgets, waiter: Waiter) -> None:
        self._budgets = budgets
        self._waiter = waiter
        self._who = EVERYBODY
        self._entered = False
        self._counted = 0
        self._announced = 0
        self._begun = 0
        self._frame_alarm: asyncio.TimerHandle | None = None
        self._unfetched = 0
        self._reserved: dict[int, int] = {}
        self._windows: dict[int, int] = {}
        """How much of each came and wasn't given back as credit."""
        self._window_bytes = 0

    def hand_to(self, waiter: Waiter) -> None:
        """From here on this one is told when there is room."""
        self._budgets.leave(self._waiter)
        self._waiter = waiter

    def enter(self, who: str) -> Overloaded | None:
        """Why there is no room for one more connection, if there is none."""
        self._who = who
        connections = self._budgets.connections
        self._entered = connections.take(who, 1)
        if self._entered:
            return None
        return Overloaded("connections", connections.limit, "connections_max")

    def leave(self, reader: FrameReader[Any]) -> None:
        """Nothing is counted any more, and what it counted of an unfinished frame is gone."""
        reader.drop()
        budgets, who = self._budgets, self._who
        for request in list(self._reserved):
            self.release(request)
        budgets.give(budgets.replies, who, self._unfetched)
        budgets.give(budgets.requests, who, self._counted + self._announced)
        self._unfetched = self._counted = self._announced = 0
        if self._entered:
            budgets.give(budgets.connections, who, 1)
            self._entered = False
        self._time_frame(0)
        budgets.leave(self._waiter)

    def count_requests(self, open_bytes: int, reader: FrameReader[Any]) -> bool:
        """Unanswered bytes, and those of an unfinished frame as its header tells them; false if
        the connection must not be read until it is resumed.
        """
        if not self._entered:
            return True
        budgets, who = self._budgets, self._who
        more, self._counted = open_bytes - self._counted, open_bytes
        free = budgets.change_requests(who, more)
        if reader.partial or self._announced or reader.begun != self._begun:
            announced = reader.announced_bytes
            if not self._count_frame(announced, reader.begun):
                budgets.wait(self._waiter)
                return False
            # A frame that has its room goes on, also while others wait.
            if announced:
                return True
            free = budgets.requests.has_room(who)
        if free:
            return True
        budgets.wait(self._waiter)
        return False

    def _count_frame(self, announced: int, begun: int) -> bool:
        """Room for all of a frame, or connections that have parts would wait for each other; false
        if there is none.
        """
        if announced == self._announced and begun == self._begun:
            return True
        budgets = self._budgets
        self._begun = begun
        budgets.give(budgets.requests, self._who, self._announced)
        self._announced = 0
        self._time_frame(announced)
        if not budgets.requests.take(self._who, announced):
            return False
        self._announced = announced
        return True

    @property
    def has_unfetched(self) -> bool:
        """Is anything counted that was answered and not fetched?"""
        return self._unfetched > 0

    def count_unfetched(self, size: int) -> None:
        """What was answered beyond what is reserved, and lies in the connection's buffer."""
        if not self._entered:
            return
        unfetched = size - self._window_bytes
        if unfetched < _UNFETCHED_MIN:
            unfetched = 0
        more = unfetched - self._unfetched
        if not more:
            return
        if more > 0:
            self._budgets.replies.hold(self._who, more)
        else:
            self._budgets.give(self._budgets.replies, self._who, -more)
        self._unfetched = unfetched

    def reserve(self, request: int, size: int) -> bool:
        """For a reply; false if it must wait until the connection is resumed."""
        if not self._entered:
            return False
        if not self._budgets.replies.take(self._who, size):
            self._budgets.wait(self._waiter)
            return False
        self._reserved[request] = size
        return True

    def subscribe(self, request: int, wanted: int, most: int) -> int:
        """The window of a new subscription; raises Overloaded if there is room for none."""
        window = self._budgets.open_window(self._who, wanted, most)
        self._reserved[request] = window
        self._windows[request] = 0
        self._window_bytes += window
        return window

    @property
    def window_bytes(self) -> int:
        """Of all subscriptions."""
        return self._window_bytes

    def delivered(self, request: int, size: int) -> None:
        if request in self._windows:
            self._windows[request] += size

    def consumed(self, request: int, size: int) -> int:
        """Credit that may be given for this: nobody has consumed more than came."""
        came = self._windows.get(request, 0)
        credit = max(0, min(size, came))
        if credit:
            self._windows[request] = came - credit
        return credit

    def release(self, request: int) -> None:
        reserved = self._reserved.pop(request, 0)
        if self._windows.pop(request, None) is None:
            self._budgets.give(self._budgets.replies, self._who, reserved)
        else:
            self._window_bytes -= reserved
            self._budgets.close_window(self._who, reserved)

    def remember(self, now: Nanoseconds) -> Overloaded | None:
        """Replies to commands are kept for all clients together; why not one more, if those to this
        one have their part.
        """
        commands = self._budgets.commands
        if commands.take(self._who, now):
            return None
        return Overloaded("commands of this client", commands.limit, "requests_max")

    def _time_frame(self, announced: int) -> None:
        if self._frame_alarm is not None:
            self._frame_alarm.cancel()
            self._frame_alarm = None
        if announced > _LARGE_BYTES:
            loop = asyncio.get_running_loop()
            self._frame_alarm = loop.call_later(_FRAME_S, self._waiter.abort)


class FirstFrame:
    """The bytes of somebody who isn't known yet: one small frame, and as much behind it."""

    def __init__(self) -> None:
        self._bytes = bytearray()
        self._taken = False

    def feed(self, data: bytes) -> bytes | None:
        """The frame, once it is whole; also as much as shows that it is too large."""
        self._bytes += data
        if self._taken:
            return None
        if len(self._bytes) < HEADER.size:
            return None
        end = HEADER.size - 8 + int.from_bytes(self._bytes[:4])
        if len(self._bytes) < end <= HELLO_BYTES_MAX:
            return None
        frame = bytes(self._bytes[: max(end, HEADER.size)])
        del self._bytes[: len(frame)]
        self._taken = True
        return frame

    @property
    def crowded(self) -> BadFrame | None:
        """Why not to listen any more, if too much came before there was an answer."""
        if len(self._bytes) <= HELLO_BYTES_MAX:
            return None
        return BadFrame(f"over {HELLO_BYTES_MAX} bytes came before the first one was answered")

    def rest(self) -> bytes:
        """What came behind it."""
        rest = bytes(self._bytes)
        self._bytes.clear()
        return rest
