"""What a broker has asked of the metadata and not heard the answer to.

Messages may be lost, so a question is repeated under its token until it is answered; what it asks
for is done once, by the request id or the object it names.
"""

from collections.abc import Callable
from typing import cast
from zlib import crc32

from anabranch.core.bolt.broker.context import BrokerContext
from anabranch.core.bolt.protocol.commands import Command, Outcome
from anabranch.core.bolt.protocol.letters import (
    Applied,
    Ask,
    Propose,
    QueryAnswer,
)
from anabranch.core.bolt.protocol.queries import Answer, Query
from anabranch.core.errors import DeadlineExceeded
from anabranch.core.errors.refused import Refused
from anabranch.core.machine import Token
from anabranch.core.records.digest import UNKNOWN
from anabranch.core.types import MS, Milliseconds, Nanoseconds

_SERIAL_BITS = 31
"""A token is a positive 64-bit number: half of it tells lives apart."""

PATIENCE_MS: Milliseconds = 30_000
"""How long a client's question may go unanswered before the client is told so."""


class _Question:
    __slots__ = ("asked_at", "message", "patient", "sent_at", "then")

    def __init__(
        self,
        message: Propose | Ask,
        then: Callable[[Outcome | Answer], None],
        patient: bool,
        now: Nanoseconds,
    ) -> None:
        self.message = message
        self.then = then
        self.patient = patient
        self.asked_at = now
        self.sent_at = now


class Correspondence:
    """Questions in the order in which they were asked; they are repeated in that order too."""

    def __init__(self, context: BrokerContext) -> None:
        self._limits = context.limits
        self._outbox = context.outbox
        self._alarms = context.alarms
        self._questions: dict[Token, _Question] = {}
        self._token: Token = 0
        self._watching = False

    def begin(self, life: bytes) -> None:
        """An answer to an earlier life, come late, must not be taken for one to this."""
        assert not self._questions, "something was asked under another life's tokens"
        self._token = crc32(life) << _SERIAL_BITS

    def ask(self, query: Query, then: Callable[[Answer], None]) -> None:
        self._token += 1
        self._put(Ask(self._token, query), cast("Callable[[Outcome | Answer], None]", then), False)

    def propose(
        self,
        request: bytes,
        command: Command,
        then: Callable[[Outcome], None],
        *,
        patient: bool = False,
        digest: int = UNKNOWN,
    ) -> None:
        """`patient`: the caller can do nothing without the answer, however long it takes.
        `digest`: of what the request asks.
        """
        self._token += 1
        message = Propose(self._token, request, command, digest)
        self._put(message, cast("Callable[[Outcome | Answer], None]", then), patient)

    def heard(self, message: Applied | QueryAnswer) -> None:
        """An answer; one that comes a second time finds nobody waiting."""
        question = self._questions.pop(message.token, None)
        if question is None:
            return
        question.then(message.outcome if isinstance(message, Applied) else message.answer)

    def repeat_all(self) -> None:
        """To a leader that has heard none of it."""
        for question in self._questions.values():
            question.sent_at = self._alarms.now
            self._outbox.counters.questions_repeated += 1
            self._outbox.tell_metadata(question.message)

    def _put(
        self, message: Propose | Ask, then: Callable[[Outcome | Answer], None], patient: bool
    ) -> None:
        assert message.token not in self._questions, "a token is given once"
        self._questions[message.token] = _Question(message, then, patient, self._alarms.now)
        self._outbox.tell_metadata(message)
        if not self._watching:
            self._look_again()

    def _look_again(self) -> None:
        assert not self._watching, "one alarm is enough"
        self._watching = True
        self._alarms.after(max(1, self._limits.propose_retry_ms // 2), self._repeat)

    def _repeat(self) -> None:
        self._watching = False
        now = self._alarms.now
        overdue = self._limits.propose_retry_ms * MS
        for token, question in list(self._questions.items()):
            if not question.patient and now - question.asked_at >= PATIENCE_MS * MS:
                del self._questions[token]
                question.then(Refused.of(_late(question.message)))
            elif now - question.sent_at >= overdue:
                question.sent_at = now
                self._outbox.counters.questions_repeated += 1
                self._outbox.tell_metadata(question.message)
        if self._questions and not self._watching:
            self._look_again()


def _late(message: Propose | Ask) -> DeadlineExceeded:
    if isinstance(message, Propose):
        return DeadlineExceeded(_what(message.command), PATIENCE_MS)
    return DeadlineExceeded.of_read(_what(message.query), PATIENCE_MS)


def _what(asked: object) -> str:
    return f"the metadata's answer to {type(asked).__name__}"
