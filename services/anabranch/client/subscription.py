"""A subscription that outlives connections: every final record once, in order (AgileLog, 4.1).

What was delivered below `final` stays as it is for good, and is never delivered again. What lies
from there to `next` is speculative. When a connection breaks, nobody can tell whether it was
decided meanwhile: it is failed, and delivered anew on the next connection.
"""

from collections import deque
from collections.abc import Sequence

from msgspec.structs import replace

from anabranch.client.effects import Arrived
from anabranch.client.line import Line
from anabranch.core.bolt.alarms import Alarm
from anabranch.core.bolt.commands import Refused
from anabranch.core.errors import AnabranchError, BadFrame, Retry
from anabranch.core.machine import Buffer
from anabranch.core.records.origins import Run
from anabranch.core.types import LogId, Position
from anabranch.core.wire.messages import (
    Confirmed,
    Credit,
    Delivered,
    Failed,
    ServerMessage,
    Subscribe,
)

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
        self._log = log
        self._speculative = speculative
        self._line: Line | None = None
        self._key = self._request = self._tries = 0
        self._held_bytes = self._owed_bytes = 0
        self._alarm: Alarm | None = None

    def begin(self, line: Line) -> None:
        self._line, self._key = line, line.key()
        line.parts[self._key] = self
        self.ready()

    def ready(self) -> None:
        line = self._of_line
        if not line.up or self._request:
            return
        if self._alarm is not None:  # a new connection came before the pause was over
            self._alarm.cancel()
        credit = line.settings.subscription_bytes - self._held_bytes
        if credit <= 0:
            return
        self._owed_bytes = 0
        self._request = line.ask(self, Subscribe(self._log, self.next, self._speculative, credit))

    def lost(self) -> None:
        self._request = 0
        self._fail(self.final)

    def taken(self, size: int) -> None:
        """The application has room for so many bytes more."""
        self._held_bytes -= size
        self._owed_bytes += size
        line = self._of_line
        if not self._request:
            if self.error is None and self._tries == 0:
                self.ready()
        elif not self._held_bytes or self._owed_bytes * 2 >= line.settings.subscription_bytes:
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
        """The application wants no more."""
        if self.error is None and self._line is not None:
            self._line.cancel(self._request)
            self._forget()

    def close(self, error: AnabranchError) -> None:
        self._end(error)

    @property
    def _of_line(self) -> Line:
        assert self._line is not None, "a subscription begins before it is heard of again"
        return self._line

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
        self._of_line.unheard(self._request)
        self._request = 0
        self._fail(self.final)
        if isinstance(error, Retry):
            self._tries += 1
            line = self._of_line
            self._alarm = line.alarms.after(line.pause(self._tries), self.ready)
        else:
            self._end(error)

    def _push(self, news: News) -> None:
        self.news.append(news)
        self._of_line.effects.append(Arrived(self))

    def _end(self, error: AnabranchError) -> None:
        line = self._of_line
        line.cancel(self._request)
        self._forget()
        self.error = error
        line.effects.append(Arrived(self))

    def _forget(self) -> None:
        line = self._of_line
        if self._alarm is not None:
            self._alarm.cancel()
        line.parts.pop(self._key, None)
        self._request = 0
