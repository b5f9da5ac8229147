"""One shard's part of a subscription, over as many connections and replicas as it takes."""

from typing import Protocol

from anabranch.client.belfast.directory import NodeLine, Whereabouts
from anabranch.client.session.commons import Commons
from anabranch.core.alarms import Alarm
from anabranch.core.belfast.protocol.messages import (
    Elsewhere,
    Subscribe,
    ToClient,
    ToServer,
    Where,
)
from anabranch.core.errors import AnabranchError, Mistake, UnknownShard
from anabranch.core.errors.refused import Refused
from anabranch.core.types import Position
from anabranch.core.wire.session import Credit

_CREDITED_PART = 8
"""Credit is given back when it is so large a part of the window: a node may keep to less."""


class Owner(Protocol):
    """The subscription that it is a part of."""

    def node_for(self, shard: str) -> str:
        """Who serves it; empty if nobody is known to."""
        ...

    def start_of(self, shard: str) -> Position: ...

    def told(self, stream: "Stream", message: ToClient) -> None: ...

    def refused(self, stream: "Stream", error: AnabranchError) -> None:
        """It can't go on."""
        ...


BelfastCommons = Commons[ToServer, ToClient, Whereabouts]


class Stream:
    def __init__(
        self, commons: BelfastCommons, owner: Owner, shard: str, where: Where | None
    ) -> None:
        self.shard = shard
        self.held_bytes = 0
        """Of what came, what the application hasn't done with."""
        self._owed_bytes = 0
        self._commons, self._owner, self._where = commons, owner, where
        self._line: NodeLine | None = None
        self._request = self._tries = 0
        self._alarm: Alarm | None = None
        self._wanted = True

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
            self._line = self._commons.router.line(node)
            start = self._owner.start_of(self.shard)
            asked = Subscribe(self.shard, start, self._where, credit)
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
            self._line.tell(Credit(self._request, self._owed_bytes))
            self._owed_bytes = 0

    def heard(self, message: ToClient | AnabranchError) -> None:
        match message:
            case Elsewhere():
                self._gone()
                self.retry()
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
