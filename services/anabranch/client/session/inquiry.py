"""Where a replicated log's nodes are, asked of one node after the other.

A node that is cut off from the others doesn't know what became of them. So each time another one
is asked, and whoever hasn't answered when the next is asked isn't waited for.
"""

from collections.abc import Callable
from typing import Generic, TypeVar

from anabranch.client.session.line import Line
from anabranch.core.errors import AnabranchError

Q = TypeVar("Q")
A = TypeVar("A")


class Inquiry(Generic[Q, A]):
    """One question at a time."""

    def __init__(self, question: Q, learn: Callable[[A], None]) -> None:
        """`learn`: called with each answer."""
        self._question, self._learn = question, learn
        self._asked: _Asked[Q, A] | None = None

    @property
    def under_way(self) -> bool:
        return self._asked is not None

    def ask(self, line: Line[Q, A]) -> None:
        """In place of whoever was asked before and hasn't answered."""
        asked = self._asked = _Asked(self, line)
        asked.request = line.ask(asked, self._question)

    def answered(self, asked: "_Asked[Q, A]", message: A | AnabranchError) -> None:
        """A late answer counts as well; a refusal, or none, says nothing."""
        self.over(asked)
        if not isinstance(message, AnabranchError):
            self._learn(message)

    def over(self, asked: "_Asked[Q, A]") -> None:
        if asked is self._asked:
            self._asked = None


class _Asked(Generic[Q, A]):
    """One node."""

    def __init__(self, inquiry: Inquiry[Q, A], line: Line[Q, A]) -> None:
        self._inquiry, self._line = inquiry, line
        self.request = 0

    def heard(self, message: A | AnabranchError) -> None:
        self._line.unheard(self.request)
        self._inquiry.answered(self, message)

    def lost(self, *, sent: bool) -> None:
        self._inquiry.over(self)
