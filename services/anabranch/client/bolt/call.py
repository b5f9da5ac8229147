"""A question to the brokers: asked on the line to the broker of its log, or on any that is up."""

from msgspec.structs import replace

from anabranch.client.bolt.refusals import BLOCKED, LEAVING, NOTHING_DONE, PUT_OFF, hold_ms
from anabranch.client.bolt.routing import BoltCommons, BrokerLine, Routing
from anabranch.client.session import call
from anabranch.client.session.commons import heed_ms
from anabranch.core.bolt.protocol.commands import Description, Receipt
from anabranch.core.bolt.protocol.compactors import (
    EndCompactor,
    ListCompactors,
    RegisterCompactor,
    RenewCompactor,
    SignCopies,
)
from anabranch.core.bolt.protocol.marks import AppendMarked
from anabranch.core.bolt.protocol.messages import (
    Append,
    ClientMessage,
    Compare,
    CreateLog,
    Describe,
    DrainBroker,
    ForgetBroker,
    Fork,
    Guarded,
    Hello,
    ListBrokers,
    ListLogs,
    Once,
    Ping,
    Read,
    Redeem,
    ServerMessage,
    Survey,
    changes,
    doubles,
)
from anabranch.core.bolt.protocol.queries import Pool
from anabranch.core.bolt.protocol.scans import EraseGarbage, ListPlans
from anabranch.core.errors import AnabranchError, Retry, Unavailable
from anabranch.core.types import MS, LogId, Milliseconds
from anabranch.core.wire.session import Cancel, Credit


class Call(call.Call[ClientMessage, ServerMessage, Routing]):
    """It stays on its line while that is up, and goes where its session moves it."""

    __slots__ = ("_patient",)

    def __init__(
        self,
        message: ClientMessage,
        what: str,
        timeout_ms: Milliseconds,
        wait_ms: Milliseconds = 0,
        *,
        patient: bool = True,
        request_id: str = "",
    ) -> None:
        """One that isn't `patient` takes being put off for its answer."""
        super().__init__(message, what, timeout_ms, wait_ms, request_id=request_id)
        self.log = subject(message)
        self._patient = patient

    def begin(self, commons: BoltCommons) -> None:
        guard = commons.settings.guard
        if guard is not None and isinstance(self._message, Once):
            self._message = Guarded(*guard, self._message)
        super().begin(commons)

    def ready(self) -> None:
        """Its line is up, or a pause is over: ask, unless an answer is on its way."""
        line = self._of_line
        if not line.up or self._request:
            return
        self._hush()  # a new connection may have come before the pause was over
        self._doubts += 1
        self._request = line.ask(self, self._message_now())

    def move(self, line: BrokerLine) -> None:
        """Ask there from now on; but an answer that is on its way is waited for."""
        if not self._request:
            self.line = line
            self.ready()

    def _ask(self) -> None:
        self.line = self._of_session.router.place(self.log)
        self.ready()

    def _message_now(self) -> ClientMessage:
        """The message with the time that is left in it."""
        message, now = self._message, self._of_session.now
        if self._wait_ms and isinstance(message, Read | Redeem):
            return replace(message, wait_ms=max(0, (self._patience - now) // MS))
        if isinstance(message, Append | AppendMarked):
            held_ms = hold_ms((self._until - now) // MS, self._wait_ms + self._timeout_ms)
            given_ms = message.wait_ms
            return replace(message, wait_ms=held_ms if given_ms < 0 else min(given_ms, held_ms))
        return message

    def _refused(self, error: AnabranchError) -> None:
        commons = self._of_session
        if isinstance(error, NOTHING_DONE):
            self._doubts -= 1
        if isinstance(error, LEAVING):
            self._refusal = error
            self._of_line.leaving = error.message
            return
        heed = heed_ms(error)
        self._tries = 1 if heed else self._tries + 1
        pause = heed + commons.pause(self._tries)
        hopeless = isinstance(error, BLOCKED if self._patient else PUT_OFF) and (
            commons.now + pause * MS >= self._patience
        )
        if hopeless or not isinstance(error, Retry):
            self._finish(error=error)
        else:
            self._refusal = commons.retried = error
            self._again = commons.alarms.after(pause, self.ready)

    def _in_vain(self) -> AnabranchError:
        return self._refusal or Unavailable("the service", self._of_session.trouble)

    def _learn(self, answer: ServerMessage) -> None:
        if isinstance(answer, Description | Pool):
            self._of_session.router.learn(answer)

    def _changes(self) -> bool:
        return changes(self._message)

    def _doubles(self) -> bool:
        return doubles(self._message)


def subject(message: ClientMessage) -> LogId | None:
    """The log that it is about, if that is known by its id."""
    match message:
        case Fork(parent=log) | Compare(a=log) | Redeem(Receipt(log)):
            return log
        case Describe(log):
            return None if isinstance(log, str) else log
        case (
            CreateLog()
            | ListLogs()
            | ListBrokers()
            | ListPlans()
            | EraseGarbage()
            | RegisterCompactor()
            | RenewCompactor()
            | EndCompactor()
            | ListCompactors()
            | SignCopies()
            | Ping()
            | Survey()
            | Hello()
            | Credit()
            | Cancel()
            | DrainBroker()
            | ForgetBroker()
        ):
            return None
        case Guarded(message=guarded):
            return subject(guarded)
        case _:
            return message.log
