"""One event loop that runs machines: it moves messages, keeps time, and decides nothing.

The duties are numbered in core/machine.py. A machine that raises has a bug, and its state can't be
trusted any more: nothing of that step is performed, no machine takes another step, and `failed`
tells whoever runs the process to end it. What was durable is found by the next life.
"""

import asyncio
import sys
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from math import ceil
from typing import Any, Protocol

from msgspec.structs import replace

from anabranch.core.askers import REQUEST_BITS, seat_number
from anabranch.core.budget import EVERYBODY
from anabranch.core.machine import (
    Campaign,
    CancelTimer,
    Drain,
    Effects,
    Event,
    Follow,
    Gone,
    Machine,
    Received,
    Replies,
    Reply,
    Request,
    Requests,
    Resign,
    Rest,
    Send,
    SetTimer,
    TimerFired,
    Token,
)
from anabranch.core.types import MS, Nanoseconds
from anabranch.core.wire.session import Cancel, Credit
from anabranch.ports import Coordinator, Journal, Network, ObjectStore
from anabranch.shell.runtime.storage import Storing
from anabranch.shell.runtime.timers import Timers
from anabranch.shell.telemetry.log import Log

_REQUEST_MASK = (1 << REQUEST_BITS) - 1
_SHOWN_CHARS_MAX = 2_000
"""Of the event that a failing machine was given."""


class Caller(Protocol):
    """Who asks a machine and is answered: a connection, or a part of this process.

    What is asked and answered is between it and the machine.
    """

    def answer(self, request: int, message: Any) -> None:
        """Take one reply; called in the midst of a turn, so it only notes it."""
        ...

    def answer_many(self, requests: Sequence[int], messages: Sequence[Any]) -> None:
        """Take one reply to each of these requests."""
        ...

    def flush(self) -> None:
        """The turn is over: pass on what was noted."""
        ...


def seat_of(token: Token) -> int:
    """The number of the seat from which this was asked."""
    return token >> REQUEST_BITS


class Seat:
    """A caller's place at one machine. Its number and a request's make the token."""

    __slots__ = ("_base", "_host", "_node")

    def __init__(self, host: "Host", node: str, number: int) -> None:
        self._host = host
        self._node = node
        self._base = number << REQUEST_BITS

    @property
    def number(self) -> int:
        return self._base >> REQUEST_BITS

    def ask(self, request: int, message: Any) -> None:
        self._host.post(self._node, Request(self._base | request, message))

    def ask_many(self, requests: Sequence[int], messages: Sequence[Any]) -> None:
        """Appends that came together: the machine gets them as one event."""
        base = self._base
        # A connection with one append in flight comes here for each; a list of one is cheaper so.
        tokens = [base | requests[0]] if len(requests) == 1 else [base | each for each in requests]
        self._host.gather(self._node, tokens, messages)

    def refer(self, request: int, message: Credit | Cancel) -> None:
        """Ask what is about another request of the same caller: machines know it by its token."""
        match message:
            case Credit():
                message = replace(message, subscription=self._base | message.subscription)
            case Cancel():
                message = replace(message, request=self._base | message.request)
        self.ask(request, message)

    def forget(self, requests: Sequence[int]) -> None:
        """Nobody waits for these answers any more."""
        if requests:
            self._host.post(self._node, Gone([self._base | request for request in requests]))

    def leave(self, requests: Sequence[int]) -> None:
        """The caller has gone, with these requests unanswered."""
        self.forget(requests)
        self._host.vacate(self._base >> REQUEST_BITS)


@dataclass(slots=True)
class HostCounters:
    turns: int = 0
    events: int = 0
    timers: int = 0


class Host:
    """Runs machines by the names of their nodes, and is the network between them.

    What is meant for nodes elsewhere goes to `network`, if there is one, and is lost if not. A
    host without a journal, or a store, runs machines that ask for none.
    """

    def __init__(
        self,
        cluster: str,
        journal: Journal | None,
        store: ObjectStore | None,
        *,
        now: Callable[[], Nanoseconds],
        log: Log,
        network: Network | None = None,
        coordinator: Coordinator | None = None,
    ) -> None:
        self._network = network
        self._coordinator = coordinator
        self._now = now
        self._log = log
        self._loop = asyncio.get_running_loop()
        self._machines: dict[str, Machine] = {}
        self._events: deque[tuple[str, Machine, Event]] = deque()
        self._taken: tuple[str, Machine, Event] | None = None
        self._turn_comes = False
        self._timers = Timers()
        self._alarm: asyncio.TimerHandle | None = None
        self._alarm_at: Nanoseconds = 0
        self._callers: dict[int, Caller] = {}
        self._seats = 0
        self._principals = {EVERYBODY: 0}
        """Numbers of all that have been here."""
        self._answered: dict[Caller, None] = {}
        self.counters = HostCounters()
        self.storing = Storing(cluster, journal, store, log, post=self.post, fail=self._stop)
        self.failed: asyncio.Future[str] = self._loop.create_future()
        """Done when no machine takes another step; says why."""
        self._resting: set[str] = set()
        self.rested: asyncio.Future[None] = self._loop.create_future()
        """Done when every machine has finished what it had in hand: after `drain`, or by itself."""

    def start(self, machines: dict[str, Machine]) -> None:
        """Begin their lives, in this order."""
        self._machines = dict(machines)
        now = self._now()
        for node, machine in machines.items():
            self._perform(node, machine.start(now))
        self._call_turn()

    def seat(self, node: str, caller: Caller, who: str = EVERYBODY) -> Seat:
        """`who`: the principal whose share of what machines have the caller takes."""
        assert node in self._machines
        self._seats += 1
        # Machines may count what a principal left behind, so its number stays when it leaves.
        principal = self._principals.setdefault(who, len(self._principals))
        number = seat_number(principal, self._seats)
        self._callers[number] = caller
        return Seat(self, node, number)

    def vacate(self, number: int) -> None:
        self._callers.pop(number, None)

    def post(self, node: str, event: Event) -> None:
        """Queue an event; it is taken in the turn that follows what the loop does now."""
        self._events.append((node, self._machines[node], event))
        if not self._turn_comes:
            self._call_turn()

    def post_from_thread(self, node: str, event: Event) -> None:
        """The same, for any thread, in the order of its calls."""
        # One that comes when the process ends finds no loop, and nobody whom it concerns.
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self.post, node, event)

    def gather(self, node: str, tokens: list[Token], messages: Sequence[Any]) -> None:
        """Queue appends; those that come right after others, from whomever, join them."""
        if self._events:
            last, _, event = self._events[-1]
            if last == node and type(event) is Requests:
                assert isinstance(event.tokens, list)
                assert isinstance(event.messages, list)
                event.tokens.extend(tokens)
                event.messages.extend(messages)
                return
        self.post(node, Requests(tokens, [*messages]))

    async def drain(self) -> None:
        """Have every machine finish what it has in hand; as long as that takes, or until one
        fails.
        """
        for node in self._machines:
            self.post(node, Drain())
        await asyncio.wait((self.rested, self.failed), return_when=asyncio.FIRST_COMPLETED)

    async def stop(self) -> None:
        """Take no more steps, and wait until nothing more is written."""
        self._stop("stopped")
        await self.storing.stop()

    def _stop(self, why: str) -> None:
        if not self.failed.done():
            self.failed.set_result(why)
        if self._alarm is not None:
            self._alarm.cancel()

    def _call_turn(self) -> None:
        self._turn_comes = True
        self._loop.call_soon(self._turn)

    def _turn(self) -> None:
        """What has come in since the last one, and all that follows from it, is done at once."""
        if self.failed.done():
            return
        self.counters.turns += 1
        whole = False
        try:
            self._settle(self._now())
            self._turn_comes = False
            self._flush()
            self._set_alarm()
            whole = True
        finally:
            if not whole:
                self._fail()

    def _settle(self, now: Nanoseconds) -> None:
        """Events until there are none, then one timer, and so on.

        So a timer set for `now` fires at the end of the turn and has seen all of it, which is what
        batching relies on. Whoever was answered by then doesn't wait for what the timer leads to.
        """
        events, counters = self._events, self.counters
        while True:
            while events:
                counters.events += len(events)
                for _ in range(len(events)):
                    self._taken = node, machine, event = events.popleft()
                    effects = machine.step(now, event)
                    if effects:
                        self._perform(node, effects)
            self._taken = None
            due = self._timers.due(now)
            if due is None:
                return
            self._flush()
            counters.timers += 1
            node, key = due
            events.append((node, self._machines[node], TimerFired(key)))

    def _flush(self) -> None:
        answered = self._answered
        if answered:
            self._answered = {}
            for caller in answered:
                caller.flush()

    def _perform(self, node: str, effects: Effects) -> None:
        """In the order given. The commonest come first."""
        callers, answered = self._callers, self._answered
        for effect in effects:
            if isinstance(effect, Reply):
                token = effect.to
                caller = callers.get(token >> REQUEST_BITS)
                if caller is not None:
                    caller.answer(token & _REQUEST_MASK, effect.message)
                    answered[caller] = None
                continue
            match effect:
                case Replies(tokens, messages):
                    self._reply(tokens, messages)
                case Send(to, message):
                    machine = self._machines.get(to)
                    if machine is not None:
                        self._events.append((to, machine, Received(node, message)))
                    elif self._network is not None:
                        self._network.send(node, to, message)
                case SetTimer(key, at):
                    self._timers.set((node, key), at)
                case CancelTimer(key):
                    self._timers.cancel((node, key))
                case Follow() | Campaign() | Resign():
                    self._coordinate(effect)
                case Rest():
                    self._rest(node)
                case _:
                    self.storing.perform(node, effect)

    def _reply(self, tokens: Sequence[Token], messages: Sequence[Any]) -> None:
        """Answers that follow each other to one caller go to it together."""
        callers, answered = self._callers, self._answered
        at, count = 0, len(tokens)
        while at < count:
            token = tokens[at]
            seat = token >> REQUEST_BITS
            end = at + 1
            while end < count and tokens[end] >> REQUEST_BITS == seat:
                end += 1
            caller = callers.get(seat)
            if caller is not None:
                answered[caller] = None
                if end == at + 1:
                    caller.answer(token & _REQUEST_MASK, messages[at])
                else:
                    requests = [each & _REQUEST_MASK for each in tokens[at:end]]
                    caller.answer_many(requests, messages[at:end])
            at = end

    def _coordinate(self, effect: Follow | Campaign | Resign) -> None:
        coordinator = self._coordinator
        assert coordinator is not None, "a member of a group runs where one leads"
        match effect:
            case Follow(after):
                coordinator.follow(after)
            case Campaign():
                coordinator.campaign()
            case Resign():
                coordinator.resign()

    def _rest(self, node: str) -> None:
        self._resting.add(node)
        if len(self._resting) == len(self._machines) and not self.rested.done():
            self.rested.set_result(None)

    def clock_moved(self) -> None:
        """The time has jumped: look now whether a timer is due."""
        if self._alarm is not None:
            self._alarm.cancel()
            self._ring()

    def _fail(self) -> None:
        """Called while the exception is on its way to the loop, which reports it with its trace."""
        error = sys.exc_info()[1]
        node, event = (self._taken[0], self._taken[2]) if self._taken else ("shell", None)
        shown = repr(event)[:_SHOWN_CHARS_MAX]
        self._log.error("a machine failed: it is stopped", node=node, error=repr(error), on=shown)
        self._stop(f"{node} failed: {error!r}")

    def _set_alarm(self) -> None:
        at = self._timers.next()
        if at is None or (self._alarm is not None and self._alarm_at <= at):
            return
        if self._alarm is not None:
            self._alarm.cancel()
        # The loop counts in ms: an alarm that rings too early would only have to be set again.
        wait_ms = ceil(max(0, at - self._now()) / MS)
        self._alarm_at = at
        self._alarm = self._loop.call_later(wait_ms / 1_000, self._ring)

    def _ring(self) -> None:
        self._alarm = None
        if not self._turn_comes:
            self._turn_comes = True
            self._turn()
