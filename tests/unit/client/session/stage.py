"""One line of a session, its engine's dialect, and a driver that a test plays itself."""

from dataclasses import dataclass, field
from typing import Any

from anabranch.client.belfast.dialect import dialect as belfast
from anabranch.client.bolt.dialect import DIALECT as BOLT
from anabranch.client.session.commons import Commons
from anabranch.client.session.dialect import Dialect, Greeting
from anabranch.client.session.effects import HangUp, Transmit
from anabranch.client.session.line import Line
from anabranch.client.session.settings import Settings
from anabranch.core.belfast.protocol import messages as of_belfast
from anabranch.core.bolt.protocol import messages as of_bolt
from anabranch.core.errors import AnabranchError
from anabranch.core.errors.refused import Refused
from anabranch.core.types import MS, Milliseconds

CLUSTER = "c"
BACK_OFF_MS = 50


@dataclass(frozen=True)
class Engine:
    """A dialect, and some of its messages."""

    dialect: Dialect[Any, Any]
    welcome: Any
    question: Any
    answer: Any


ENGINES = {
    "bolt": Engine(
        BOLT, of_bolt.Welcome(1, CLUSTER, "s", 100, 1_000, 10), of_bolt.Survey(), of_bolt.Done()
    ),
    "belfast": Engine(
        belfast(CLUSTER),
        of_belfast.Welcome(1, CLUSTER, "n", "", 1_000, 10),
        of_belfast.Inspect(),
        of_belfast.Done(),
    ),
}


@dataclass
class Caller:
    """Asked something, and remembers what it got."""

    got: list[Any] = field(default_factory=list[Any])
    losses: list[bool] = field(default_factory=list[bool])

    def heard(self, message: Any) -> None:
        self.got.append(message)

    def lost(self, *, sent: bool) -> None:
        self.losses.append(sent)


class Stage:
    """Owns one line. `back_off_ms` None: it is dialed again when somebody asks."""

    def __init__(
        self, engine: Engine, back_off_ms: Milliseconds | None = None, **settings: Any
    ) -> None:
        self.engine = engine
        self.commons: Commons[Any, Any, Any] = Commons(
            engine.dialect, Settings(client="t", **settings), lambda _: 0
        )
        self.line = Line(self.commons, 0, "host:1", self)
        self.wanted = False
        self.idle_after_ms: Milliseconds | None = None
        self.greetings: list[Greeting] = []
        self.falls: list[bool] = []
        self.rejections: list[AnabranchError] = []
        self.stranger: str | None = None
        self._back_off_ms = back_off_ms

    def wants(self, line: Line[Any, Any]) -> bool:
        return self.wanted

    def back_off(self, line: Line[Any, Any]) -> Milliseconds | None:
        return self._back_off_ms

    def idle_ms(self, line: Line[Any, Any]) -> Milliseconds | None:
        return self.idle_after_ms

    def mistaken(self, line: Line[Any, Any], greeting: Greeting) -> str | None:
        return self.stranger

    def rose(self, line: Line[Any, Any], greeting: Greeting) -> None:
        self.greetings.append(greeting)

    def fell(self, line: Line[Any, Any], *, was_up: bool) -> None:
        self.falls.append(was_up)

    def rejected(self, line: Line[Any, Any], error: AnabranchError) -> None:
        self.rejections.append(error)
        line.hang_up(error.message)

    def connect(self, token: str | None = None) -> None:
        """The connection is open, and the server says its welcome."""
        self.line.connected(token)
        self.hear(0, self.engine.welcome)

    def hear(self, request: int, message: Any) -> None:
        self.line.hear([(request, message)])

    def refuse(self, request: int, error: AnabranchError) -> None:
        self.hear(request, Refused.of(error))

    def ask(self) -> tuple[Caller, int]:
        caller = Caller()
        return caller, self.line.ask(caller, self.engine.question)

    def effects(self) -> list[Any]:
        """Since they were taken last, without timers."""
        effects, self.commons.effects = self.commons.effects, []
        return effects

    def sent(self) -> list[Any]:
        """Messages that were transmitted since effects were taken last."""
        return [each.message for each in self.effects() if isinstance(each, Transmit)]

    def hung_up(self) -> bool:
        return any(isinstance(each, HangUp) for each in self.effects())

    def advance(self, ms: Milliseconds) -> None:
        """Time passes, a millisecond at a time."""
        for _ in range(ms):
            self.commons.alarms.now += MS
            self.commons.alarms.ring()
