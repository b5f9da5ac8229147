"""A session with a log whose clients ask its nodes themselves: one line to each node they ask.

Nodes say where the others are. While anything depends on that, one node after the other is asked
again. An engine's session derives from this one, and keeps the engine's appender and routes.
"""

from abc import abstractmethod
from collections.abc import Mapping
from typing import Protocol, TypeVar

from anabranch.client.session.commons import RandomBits
from anabranch.client.session.dialect import Dialect, Greeting
from anabranch.client.session.line import Line
from anabranch.client.session.session import Session
from anabranch.client.session.settings import Settings
from anabranch.core.errors import AnabranchError
from anabranch.core.types import Milliseconds

Q = TypeVar("Q")
A = TypeVar("A")


class NodeRoutes(Protocol):
    """Where the log's nodes are, as far as is known."""

    @property
    def hosts(self) -> Mapping[str, str]:
        """Where nodes were met last, by their addresses."""
        ...

    def ask(self) -> None: ...

    def ask_another(self) -> None: ...


class Located(Protocol):
    """Whatever goes to other nodes once somebody has said anew where these are."""

    def located(self) -> None: ...


class NodeAppender(Located, Protocol):
    @property
    def idle(self) -> bool: ...

    def pump(self) -> None: ...

    def close(self, error: AnabranchError) -> None: ...


R = TypeVar("R", bound=NodeRoutes)


class NodeSession(Session[Q, A, R]):
    """One client's conversations with the nodes of one log."""

    whereabouts: R

    def __init__(
        self, cluster: str, dialect: Dialect[Q, A], settings: Settings, randbits: RandomBits
    ) -> None:
        super().__init__(dialect, settings, randbits)
        self._cluster = cluster
        self._asking = False
        """Other nodes are asked, one after the other, where the log is."""

    @property
    @abstractmethod
    def _appends(self) -> NodeAppender:
        """The engine's appender."""

    @abstractmethod
    def _streams(self) -> list[Located]:
        """Subscriptions that go to other nodes when these have moved."""

    def host_of(self, address: str) -> str:
        return self.whereabouts.hosts.get(address, "")

    def wants(self, line: Line[Q, A]) -> bool:
        return False

    def back_off(self, line: Line[Q, A]) -> Milliseconds | None:
        """Callers, producers and streams pause by themselves, and may go elsewhere."""
        return None

    def idle_ms(self, line: Line[Q, A]) -> Milliseconds | None:
        """A log has many nodes, and a program may ask each of them once."""
        return self.settings.idle_ms

    def mistaken(self, line: Line[Q, A], greeting: Greeting) -> str | None:
        if greeting.cluster == self._cluster:
            return None
        return f"it belongs to {greeting.cluster}, not to {self._cluster}"

    def fell(self, line: Line[Q, A], *, was_up: bool) -> None:
        """Whoever asked on the line was told already."""

    def rejected(self, line: Line[Q, A], error: AnabranchError) -> None:
        self._commons.refusals[line.number] = error
        line.hang_up(error.message)

    def _start(self) -> None:
        self.whereabouts.ask()

    def _pump(self) -> None:
        if self.ended is not None:
            return
        self._appends.pump()
        if not self._asking and self._busy:
            self._asking = True
            self._commons.alarms.after(self.settings.directory_ms, self._ask_another)

    def _close(self, error: AnabranchError) -> None:
        self._appends.close(error)

    def _located(self) -> None:
        self._appends.located()
        for stream in self._streams():
            stream.located()

    @property
    def _busy(self) -> bool:
        """Would it matter if nodes were elsewhere?"""
        return bool(self._commons.parts) or not self._appends.idle

    def _ask_another(self) -> None:
        self._asking = False
        if self.ended is None and self._busy:
            self.whereabouts.ask_another()
