"""A question to the nodes of a replicated log: to the leader, or to any that knows."""

from abc import ABC, abstractmethod
from typing import ClassVar, TypeVar

from anabranch.client.session.call import Call
from anabranch.client.session.line import Line
from anabranch.core.errors import AnabranchError, Retry, Unavailable

Q = TypeVar("Q")
A = TypeVar("A")
R = TypeVar("R")


class LeaderCall(Call[Q, A, R], ABC):
    """Each try may be at another node; one that doesn't take the connection isn't waited for."""

    __slots__ = ()

    RETRIED: ClassVar[tuple[type[AnabranchError], ...]] = (Retry,)
    """Refusals after which it is asked again."""

    @property
    @abstractmethod
    def _for_anybody(self) -> bool:
        """Does any node answer this question by itself?"""

    @property
    @abstractmethod
    def _leader(self) -> str:
        """The node that is known to lead; empty if none is."""

    @abstractmethod
    def _another(self) -> str:
        """The next node, by turns."""

    @abstractmethod
    def _line_to(self, node: str) -> Line[Q, A]: ...

    def lost(self, *, sent: bool) -> None:
        super().lost(sent=sent)
        self._doubts += sent
        commons = self._of_session
        refusal = commons.refusals.get(self._of_line.number)
        if refusal is not None and not commons.let_in:
            self._finish(error=refusal)
        else:
            self._retry()

    def _ask(self) -> None:
        """Every other try is at any node: the leader that is known may be gone."""
        known = self._leader
        anybody = self._for_anybody or not known or self._tries % 2
        self._ask_at(self._line_to(self._another() if anybody else known))

    def _ask_at(self, line: Line[Q, A]) -> None:
        self.line = line
        self._request = line.ask(self, self._message)
        if not line.up or self._for_anybody:
            commons = self._of_session
            self._again = commons.alarms.after(commons.settings.directory_ms, self._hedge)

    def _hedge(self) -> None:
        """Another node may know as well, or take the connection."""
        line = self._of_line
        if self._request and (not line.up or self._for_anybody):
            line.cancel(self._request)
            self._request = 0
            self._retry()

    def _redirect(self, node: str) -> None:
        """Follow at once, but not for ever: two nodes that name each other are out of date."""
        if node and node != self._of_line.address and not self._tries % 4:
            self._tries += 1
            self._ask_at(self._line_to(node))
        else:
            self._retry()

    def _refused(self, error: AnabranchError) -> None:
        self._refusal = error
        if self._retries(error):
            self._of_session.retried = error
            self._retry()
        else:
            self._finish(error=error)

    def _retries(self, error: AnabranchError) -> bool:
        return isinstance(error, self.RETRIED)

    def _retry(self) -> None:
        self._hush()
        self._tries += 1
        commons = self._of_session
        self._again = commons.alarms.after(commons.pause(self._tries), self._ask)

    @property
    def _in_doubt(self) -> bool:
        asked = self._request != 0 and self._of_line.up
        return asked or super()._in_doubt

    def _in_vain(self) -> AnabranchError:
        commons = self._of_session
        return self._refusal or commons.rejection or Unavailable(self._what, commons.trouble)
