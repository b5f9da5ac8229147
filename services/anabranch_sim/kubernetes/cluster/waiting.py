"""Coroutines of the operator's shell, run on simulated time: what they await is answered later."""

from collections.abc import Callable, Coroutine, Generator
from typing import Any, Generic, TypeVar

T = TypeVar("T")
Turn = Callable[[Callable[[], None]], None]
"""Has something done by whoever waits, if it still lives, and when it isn't paused."""


class Promise(Generic[T]):
    """What somebody waits for: an answer or an error, the first of either that comes."""

    __slots__ = ("_answer", "_error", "_known", "_then")

    def __init__(self) -> None:
        self._known = False
        self._answer: T | None = None
        self._error: Exception | None = None
        self._then: Callable[[], None] | None = None

    def settle(self, answer: T) -> None:
        if not self._known:
            self._answer = answer
            self._tell()

    def fail(self, error: Exception) -> None:
        if not self._known:
            self._error = error
            self._tell()

    def then(self, act: Callable[[], None]) -> None:
        self._then = act
        if self._known:
            act()

    def __await__(self) -> Generator["Promise[T]", None, T]:
        if not self._known:
            yield self
        if self._error is not None:
            raise self._error
        return self._answer  # type: ignore[return-value]

    def _tell(self) -> None:
        self._known = True
        if self._then is not None:
            self._then()


def drive(work: Coroutine[Any, None, T], turn: Turn, done: Callable[[T], None]) -> None:
    """Run it until it waits, and on when what it waits for is known."""

    def go() -> None:
        try:
            promise: Promise[Any] = work.send(None)
        except StopIteration as end:
            done(end.value)
            return
        promise.then(lambda: turn(go))

    go()
