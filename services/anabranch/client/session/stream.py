"""One shard's part of a subscription, over as many connections and replicas as it takes."""

from abc import ABC, abstractmethod
from typing import Any, Generic, Protocol, TypeVar

from anabranch.client.session.commons import Commons
from anabranch.client.session.line import Line
from anabranch.core.alarms import Alarm
from anabranch.core.errors import AnabranchError, Mistake, UnknownShard
from anabranch.core.errors.refused import Refused
from anabranch.core.types import Position

_CREDITED_PART = 8
"""Credit is given back when it is so large a part of the window: a node may keep to less."""


Q = TypeVar("Q")
A = TypeVar("A")
A_contra = TypeVar("A_contra", contravariant=True)


class Owner(Protocol[A_contra]):
    """The subscription that it is a part of."""

    def node_for(self, shard: str) -> str:
        """Who serves it; empty if nobody is known to."""
        ...

    def start_of(self, shard: str) -> Position: ...

    def told(self, stream: "Stream[Any, Any]", message: A_contra) -> None: ...

    def refused(self, stream: "Stream[Any, Any]", error: AnabranchError) -> None:
        """It can't go on."""
        ...


class Stream(ABC, Generic[Q, A]):
    """Made by a subscription, for one shard."""

    def __init__(self, commons: Commons[Q, A, Any], owner: Owner[A], shard: str) -> None:
        self.shard = shard
        self.held_bytes = 0
        """Of what came, what the application hasn't done with."""
        self._owed_bytes = 0
        self._commons, self._owner = commons, owner
        self._line: Line[Q, A] | None = None
        self._request = self._tries = 0
        self._alarm: Alarm | None = None
        self._wanted = True

    @abstractmethod
    def _line_to(self, node: str) -> Line[Q, A]: ...

    @abstractmethod
    def _question(self, start: Position, credit: int) -> Q:
        """Subscribe to the shard from here on."""

    @abstractmethod
    def _credit(self, request: int, size: int) -> Q:
        """So many bytes more may come."""

    @abstractmethod
    def _moved(self, message: A) -> bool:
        """Does the node say that another one serves the shard?"""

    @property
    def node(self) -> str:
        """Who is asked; empty if nobody is."""
        return self._line.address if self._request and self._line is not None else ""

    def open(self) -> None:
        """Ask for everything from where the shard's part ends; nothing if that was asked."""
        if self._request or not self._wanted:
            return
        self._hush()
        node = self._owner.node_for(self.shard)
        # A little even if there is no room: without a stream nothing that is held is confirmed.
        credit = max(1, self._commons.settings.window_bytes - self.held_bytes)
        if not node:
            self.retry()
        else:
            self._owed_bytes = 0
            self._line = self._line_to(node)
            asked = self._question(self._owner.start_of(self.shard), credit)
            self._request = self._line.ask(self, asked)

    def stop(self) -> None:
        """Hear no more of what was asked."""
        self._hush()
        if self._request and self._line is not None:
            self._line.cancel(self._request)
        self._request = 0

    def retire(self) -> None:
        """Nothing more is wanted of the shard, as it is now."""
        self._wanted = False
        self.stop()

    def resume(self) -> None:
        self._wanted = True
        self.open()

    def retry(self) -> None:
        """Ask anew, after a pause."""
        self.stop()
        if self._wanted:
            self._tries += 1
            pause = self._commons.pause(self._tries)
            self._alarm = self._commons.alarms.after(pause, self.open)

    def released(self, size: int) -> None:
        """So many bytes are done with; the shard may send as many more."""
        self.held_bytes -= size
        self._owed_bytes += size
        if not self._request:
            if self._alarm is None:
                self.open()
        elif (
            not self.held_bytes
            or self._owed_bytes >= self._commons.settings.window_bytes // _CREDITED_PART
        ):
            assert self._line is not None
            self._line.tell(self._credit(self._request, self._owed_bytes))
            self._owed_bytes = 0

    def heard(self, message: A | AnabranchError) -> None:
        match message:
            case Refused():
                self._gone()
                error = message.error()
                if isinstance(error, Mistake) and not isinstance(error, UnknownShard):
                    self._owner.refused(self, error)
                else:
                    self.retry()
            case AnabranchError():
                self._gone()
                self._owner.refused(self, message)
            case _ if self._moved(message):
                self._gone()
                self.retry()
            case _:
                self._tries = 0
                self._owner.told(self, message)

    def lost(self, *, sent: bool) -> None:
        self._request = 0
        self.retry()

    def _gone(self) -> None:
        assert self._line is not None
        self._line.unheard(self._request)
        self._request = 0

    def _hush(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
