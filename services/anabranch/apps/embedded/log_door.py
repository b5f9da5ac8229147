"""The way from the machines of a lazy front to the broker of their process."""

from collections.abc import Sequence
from typing import Any

from anabranch.core.bolt.front.questions import LOG, AskLog, LogAnswered
from anabranch.shell.peers.exchange import Exchange
from anabranch.shell.runtime.driver import Host


class LogDoor:
    """Passes on what a front's machines ask, and brings the answers back; none is lost."""

    def __init__(self, host: Host, broker: str, exchange: Exchange) -> None:
        self._exchange = exchange
        self._seat = host.seat(broker, self)
        self._serial = 0
        self._asked: dict[int, tuple[str, int]] = {}
        """By the number under which the broker was asked: who did, and under which number."""
        self._answers: list[tuple[int, Any]] = []

    def receive(self, sender: str, letter: AskLog) -> None:
        self._serial += 1
        self._asked[self._serial] = sender, letter.request
        self._seat.ask(self._serial, letter.message)

    def answer(self, request: int, message: Any) -> None:
        self._answers.append((request, message))

    def answer_many(self, requests: Sequence[int], messages: Sequence[Any]) -> None:
        self._answers += zip(requests, messages, strict=True)

    def flush(self) -> None:
        answers, self._answers = self._answers, []
        for request, message in answers:
            asked = self._asked.pop(request, None)
            if asked is not None:
                self._exchange.send(LOG, asked[0], LogAnswered(asked[1], message))

    def close(self) -> None:
        """The front stops: nobody waits for any answer."""
        self._seat.leave(list(self._asked))
        self._asked.clear()
