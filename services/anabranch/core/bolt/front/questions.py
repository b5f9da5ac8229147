"""What a machine of a front asks of its log, through any broker, until it is answered.

Every question may be asked again: the log knows batches by their numbers, epochs and terms by their
order.
"""

from collections.abc import Callable
from functools import partial

import msgspec

from anabranch.core.alarms import Alarm, Alarms
from anabranch.core.bolt.front.config import RETRY_MS, SILENT_MS
from anabranch.core.bolt.protocol.fronts import FrontRequest
from anabranch.core.errors import BY_CODE, BrokerDraining, BrokerFenced, LateCommit, Retry
from anabranch.core.errors.refused import Refused
from anabranch.core.machine import Effect, Send

LOG = "/log"
"""The name under which a front's machines send what they ask."""
_OTHER_BROKER = (BrokerDraining.code, BrokerFenced.code, LateCommit.code)

Answer = object
"""What a broker answers to such a request."""


class AskLog(msgspec.Struct, frozen=True, gc=False):
    """To the log: do this, and answer under this number."""

    request: int
    message: FrontRequest


class LogAnswered(msgspec.Struct, frozen=True, gc=False):
    """From the log."""

    request: int
    answer: Answer


class Question:
    __slots__ = ("alarm", "message", "then")

    def __init__(self, message: FrontRequest, then: Callable[[Answer], None]) -> None:
        self.message = message
        self.then = then
        self.alarm: Alarm | None = None


class Questions:
    """Of one machine. A refusal that may pass is waited out; any other answer is passed on."""

    def __init__(self, effects: list[Effect], alarms: Alarms) -> None:
        self.obstacle = ""
        """Why the log refused something last, until it grants something."""
        self._effects = effects
        self._alarms = alarms
        self._serial = 0
        self._questions: dict[int, Question] = {}

    def __len__(self) -> int:
        return len(self._questions)

    def ask(self, message: FrontRequest, then: Callable[[Answer], None]) -> None:
        self._put(Question(message, then))

    def ask_later(self, message: FrontRequest, then: Callable[[Answer], None]) -> None:
        """After a pause."""
        question = Question(message, then)
        assert question.alarm is None
        self._serial += 1
        number = self._serial
        self._questions[number] = question
        question.alarm = self._alarms.after(RETRY_MS, partial(self._again, number))

    def answered(self, letter: LogAnswered) -> None:
        """An answer that comes a second time finds nobody waiting."""
        question = self._questions.pop(letter.request, None)
        if question is None:
            return
        if question.alarm is not None:
            question.alarm.cancel()
        answer = letter.answer
        if isinstance(answer, Refused):
            self.obstacle = answer.message
            if _may_pass(answer):
                self.ask_later(question.message, question.then)
                return
        else:
            self.obstacle = ""
        question.then(answer)

    def forget(self) -> None:
        """Nobody waits for any answer any more."""
        for question in self._questions.values():
            if question.alarm is not None:
                question.alarm.cancel()
        self._questions.clear()
        assert not len(self)

    def _put(self, question: Question) -> None:
        self._serial += 1
        number = self._serial
        self._questions[number] = question
        question.alarm = self._alarms.after(SILENT_MS, partial(self._again, number))
        self._effects.append(Send(LOG, AskLog(number, question.message)))

    def _again(self, number: int) -> None:
        assert number <= self._serial, "only what was asked is asked again"
        question = self._questions.pop(number, None)
        if question is not None:
            self._put(question)


def _may_pass(refused: Refused) -> bool:
    """Would the same request be granted later, or by another broker?"""
    kind = BY_CODE.get(refused.code)
    return refused.code in _OTHER_BROKER or (kind is not None and issubclass(kind, Retry))
