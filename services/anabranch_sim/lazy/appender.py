"""A program that appends through a lazy front, until the log's appends become direct."""

from typing import Any

from anabranch.core.errors import BadRequest, OutcomeUnknown
from anabranch.core.errors.refused import Refused
from anabranch.core.erwin.invariants.account import AppendCall
from anabranch_sim.erwin import appender
from anabranch_sim.erwin.appender import InFlight

_ENDED = (BadRequest.code, OutcomeUnknown.code)
"""What a front answers that ends, or has ended."""


class Appender(appender.Appender):
    def stop(self) -> None:
        """The front has ended: nobody knows what became of what it hasn't acknowledged."""
        self.finished = True
        self._waiting.clear()
        self._finding.clear()
        for each in list(self._open.values()):
            self._give_up(each)

    def _refused(self, each: InFlight, key: tuple[str, int], refused: Refused) -> None:
        if refused.code in _ENDED:
            self.finished = True
            self._waiting.clear()
            self._give_up(each)
        else:
            super()._refused(each, key, refused)

    def _found(self, call: AppendCall, message: Any) -> None:
        if isinstance(message, Refused) and message.code in _ENDED:
            self._finding.pop(call.id, None)
        else:
            super()._found(call, message)
