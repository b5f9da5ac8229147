"""Requests that are waited for: reads, receipts and control requests on their way to an answer."""

from collections.abc import Callable

from anabranch.core.alarms import Alarm
from anabranch.core.askers import asker_of
from anabranch.core.bolt.broker.context import BrokerContext
from anabranch.core.bolt.broker.watches import Watches
from anabranch.core.bolt.protocol.letters import Moved
from anabranch.core.budget import Budget
from anabranch.core.errors import Overloaded
from anabranch.core.machine import Token
from anabranch.core.types import MS, LogId, Milliseconds, Nanoseconds


class Wait:
    """One request: until when it may wait, and what it listens to meanwhile."""

    __slots__ = ("alarm", "arrived_at", "in_doubt", "listener", "log", "over", "token")

    def __init__(self, token: Token, arrived_at: Nanoseconds) -> None:
        self.token = token
        self.arrived_at = arrived_at
        self.over = False
        self.in_doubt = False
        """The metadata have been asked to do something, and may have."""
        self.alarm: Alarm | None = None
        self.log: LogId | None = None
        self.listener = 0


class Waits:
    """A bounded number of requests, each of which ends exactly once."""

    def __init__(self, context: BrokerContext, watches: Watches) -> None:
        self._room = Budget(context.limits.waits_max)
        """Shared by those whose requests wait."""
        self._outbox = context.outbox
        self._alarms = context.alarms
        self._watches = watches
        self._open: dict[Token, Wait] = {}

    def __len__(self) -> int:
        return len(self._open)

    def begin(self, token: Token) -> Wait | None:
        """None if there are too many, which the client has then been told."""
        assert token not in self._open, "a token names one request"
        if not self._room.take(asker_of(token), 1):
            what = "this client's share of requests that wait"
            self._outbox.refuse(token, Overloaded(what, self._room.limit, "waits_max"))
            return None
        wait = self._open[token] = Wait(token, self._alarms.now)
        return wait

    def end(self, wait: Wait) -> None:
        """It has its answer, or nobody wants it any more."""
        if wait.over:
            return
        wait.over = True
        self._rest(wait)
        assert self._open[wait.token] is wait
        del self._open[wait.token]
        self._room.give(asker_of(wait.token), 1)

    def drop(self, token: Token) -> None:
        wait = self._open.get(token)
        if wait is not None:
            self.end(wait)

    def tokens(self) -> list[Token]:
        return list(self._open)

    def in_doubt(self) -> list[Token]:
        return [token for token, wait in self._open.items() if wait.in_doubt]

    def left_ms(self, wait: Wait, wait_ms: Milliseconds) -> Milliseconds:
        """Of so long a wait, counted from the request's arrival."""
        return wait_ms - (self._alarms.now - wait.arrived_at) // MS

    def sleep(
        self,
        wait: Wait,
        log: LogId,
        wakes: Callable[[Moved], bool],
        again: Callable[[], None],
        at_most_ms: Milliseconds,
        too_late: Callable[[], None],
    ) -> None:
        """Until the log moves so that it `wakes` this wait, or time is up."""
        assert not wait.over, "nobody waits any more"
        assert wait.log is None, "it sleeps already"
        assert at_most_ms > 0

        def moved(moved: Moved) -> None:
            if wakes(moved):
                self._rest(wait)
                again()

        def expired() -> None:
            self._rest(wait)
            too_late()

        latest = self._watches.latest(log)
        if latest is not None and wakes(latest):
            again()
            return
        wait.log = log
        wait.listener = self._watches.listen(log, moved)
        wait.alarm = self._alarms.after(at_most_ms, expired)

    def _rest(self, wait: Wait) -> None:
        if wait.alarm is not None:
            wait.alarm.cancel()
            wait.alarm = None
        if wait.log is not None:
            self._watches.leave(wait.log, wait.listener)
            wait.log = None
