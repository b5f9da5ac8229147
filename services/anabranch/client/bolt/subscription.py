"""A subscription that outlives connections: every final record once, in order (AgileLog, 4.1).

What was delivered below `final` stays as it is for good, and is never delivered again. What lies
from there to `next` is speculative. When a connection breaks, nobody can tell whether it was
decided meanwhile: it is failed, and delivered anew on the next connection.
"""

from collections import deque
from collections.abc import Sequence

from msgspec.structs import replace

from anabranch.client.bolt.refusals import LEAVING
from anabranch.client.bolt.routing import BoltCommons, BrokerLine
from anabranch.client.session.effects import Arrived
from anabranch.core.alarms import Alarm
from anabranch.core.bolt.protocol.messages import (
    Confirmed,
    Delivered,
    Failed,
    ServerMessage,
    Subscribe,
)
from anabranch.core.errors import AnabranchError, BadFrame, Retry, Unavailable
from anabranch.core.errors.refused import Refused
from anabranch.core.machine import Buffer
from anabranch.core.records.origins import Run
from anabranch.core.types import LogId, Position
from anabranch.core.wire.session import Credit

News = Delivered | Confirmed | Failed


def size_of(news: News) -> int:
    """The credit that this took."""
    return sum(map(len, news.batches)) if isinstance(news, Delivered) else 0


class Subscription:
    """Made by a driver, given with Opened. It takes `news` off, and says so with Taken."""

    def __init__(self, log: LogId, start: Position, *, speculative: bool) -> None:
        self.news: deque[News] = deque()
        self.error: AnabranchError | None = None
        """Why there will be no more news, once what is there has been taken."""
        self.waiter: object = None
        """The driver's own."""
        self.final = self.next = start
        self.log: LogId | None = log
        self.line: BrokerLine | None = None
        self._subject = log
        self._speculative = speculative
        self._commons: BoltCommons | None = None
        self._key = self._request = self._tries = 0
        self._held_bytes = self._owed_bytes = 0
        self._alarm: Alarm | None = None

    def begin(self, commons: BoltCommons) -> None:
        self._commons, self._key = commons, commons.key()
        commons.parts[self._key] = self
        self.line = commons.router.place(self.log)
        self.ready()

    def ready(self) -> None:
        commons, line = self._begun
        if not line.up or self._request:
            return
        if self._alarm is not None:  # a new connection came before the pause was over
            self._alarm.cancel()
        credit = commons.settings.subscription_bytes - self._held_bytes
        if credit <= 0:
            return
        self._owed_bytes = 0
        asked = Subscribe(self._subject, self.next, self._speculative, credit)
        self._request = line.ask(self, asked)

    def lost(self, *, sent: bool) -> None:
        """What was speculative may have been decided meanwhile: it is failed, and comes anew."""
        self._request = 0
        self._fail(self.final)

    def move(self, line: BrokerLine) -> None:
        if self._request:
            self._begun[1].cancel(self._request)
            self.lost(sent=True)
        self.line = line
        self.ready()

    def taken(self, size: int) -> None:
        """The application has room for so many bytes more."""
        self._held_bytes -= size
        self._owed_bytes += size
        commons, line = self._begun
        if not self._request:
            if self.error is None and self._tries == 0:
                self.ready()
        elif not self._held_bytes or self._owed_bytes * 2 >= commons.settings.subscription_bytes:
            line.tell(Credit(self._request, self._owed_bytes))
            self._owed_bytes = 0

    def heard(self, message: ServerMessage | AnabranchError) -> None:
        self._tries = 0
        match message:
            case Delivered(runs, batches, speculative):
                self._deliver(runs, batches, speculative=speculative)
            case Confirmed(up_to):
                self._confirm(up_to)
            case Failed(since):
                self._fail(since)
            case Refused():
                self._refused(message.error())
            case _:
                name = type(message).__name__
                self._end(BadFrame(f"a subscription was answered with {name}"))

    def leave(self) -> None:
        """The application wants no more; whoever still waits for news is told so."""
        if self.error is None and self.line is not None:
            self._end(Unavailable("this subscription", "it was closed"))

    def close(self, error: AnabranchError) -> None:
        self._end(error)

    @property
    def _begun(self) -> tuple[BoltCommons, BrokerLine]:
        assert self._commons is not None, "a subscription begins before it is heard of again"
        assert self.line is not None, "a subscription begins on a line"
        return self._commons, self.line

    def _deliver(
        self, runs: Sequence[Run], batches: Sequence[Buffer], *, speculative: bool
    ) -> None:
        wanted: list[Run] = []
        position = self.next
        for run in runs:
            late = max(0, position - run.first)
            if run.first > position or late > run.count:
                self._end(BadFrame(f"records of {run.first} came where {position} was next"))
                return
            wanted.append(
                replace(
                    run,
                    first=run.first + late,
                    count=run.count - late,
                    skip=run.skip + late,
                    origin_first=run.origin_first + late,
                )
                if late
                else run
            )
            position = run.first + run.count
        if not speculative:
            self._confirm(self.next)
        news = Delivered(wanted, list(batches), speculative)
        self._held_bytes += size_of(news)
        self.next = position
        if not speculative:
            self.final = position
        self._push(news)

    def _confirm(self, up_to: Position) -> None:
        up_to = min(up_to, self.next)
        if up_to > self.final:
            self.final = up_to
            self._push(Confirmed(up_to))

    def _fail(self, since: Position) -> None:
        since = max(since, self.final)
        if since < self.next:
            self.next = since
            self._push(Failed(since))

    def _refused(self, error: AnabranchError) -> None:
        commons, line = self._begun
        line.unheard(self._request)
        self._request = 0
        self._fail(self.final)
        if isinstance(error, LEAVING):
            line.leaving = error.message
        elif isinstance(error, Retry):
            self._tries += 1
            pause = commons.pause(self._tries)
            self._alarm = commons.alarms.after(pause, self.ready)
        else:
            self._end(error)

    def _push(self, news: News) -> None:
        self.news.append(news)
        self._begun[0].effects.append(Arrived(self))

    def _end(self, error: AnabranchError) -> None:
        commons, line = self._begun
        line.cancel(self._request)
        self._forget()
        self.error = error
        commons.effects.append(Arrived(self))

    def _forget(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
        self._begun[0].parts.pop(self._key, None)
        self._request = 0
