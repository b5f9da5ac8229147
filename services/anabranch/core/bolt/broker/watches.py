"""The logs whose moves a broker follows, for whoever waits for something to happen to them."""

from collections.abc import Callable

import msgspec

from anabranch.core.bolt.broker.context import BrokerContext
from anabranch.core.bolt.protocol.letters import Moved, Unwatch, Watch
from anabranch.core.types import LogId

Listener = Callable[[Moved], None]


class _Watched:
    __slots__ = ("latest", "listeners", "repeat_wanted")

    def __init__(self) -> None:
        self.latest: Moved | None = None
        self.listeners: dict[int, Listener] = {}
        self.repeat_wanted = False
        """Even what is known already is news to somebody."""


class Watches:
    """One watch a log, however many listen; it outlives the last listener by one interval.

    So a reader that comes and goes at a busy log's tail costs no message each time.
    """

    def __init__(self, context: BrokerContext) -> None:
        self._limits = context.limits
        self._outbox = context.outbox
        self._alarms = context.alarms
        self._watched: dict[LogId, _Watched] = {}
        self._serial = 0
        self._repeating = False

    def listen(self, log: LogId, listener: Listener) -> int:
        """Be told of every move from now on; the number is what `leave` asks for."""
        watched = self._watched.get(log)
        if watched is None:
            watched = self._watched[log] = _Watched()
            self._outbox.tell_metadata(Watch([(log, 0)]))
            if not self._repeating:
                self._repeat_later()
        self._serial += 1
        watched.listeners[self._serial] = listener
        return self._serial

    def leave(self, log: LogId, listener: int) -> None:
        watched = self._watched.get(log)
        if watched is not None:
            watched.listeners.pop(listener, None)

    def latest(self, log: LogId) -> Moved | None:
        """The last that was heard; there may be newer, but a listener will hear of that."""
        watched = self._watched.get(log)
        return watched.latest if watched else None

    def ask_anew(self, log: LogId) -> None:
        """Have the listeners told how things stand, though nothing may have changed."""
        watched = self._watched.get(log)
        if watched is not None:
            watched.repeat_wanted = True
            self._outbox.tell_metadata(Watch([(log, 0)]))

    def moved(self, moved: Moved) -> None:
        watched = self._watched.get(moved.log)
        if watched is None:
            return
        known = watched.latest.version if watched.latest else -1
        if moved.version < known or (moved.version == known and not watched.repeat_wanted):
            return
        if moved.after != known:
            # `diverges` counts from a move that never came here.
            moved = msgspec.structs.replace(moved, diverges=0)
        watched.latest = moved
        watched.repeat_wanted = False
        for listener in list(watched.listeners.values()):
            listener(moved)

    def repeat_all(self) -> None:
        """To a leader that has heard none of it."""
        if self._watched:
            self._outbox.tell_metadata(
                Watch([self._known(*item) for item in self._watched.items()])
            )

    def _repeat_later(self) -> None:
        assert not self._repeating, "one alarm is enough"
        self._repeating = True
        self._alarms.after(self._limits.watch_ms, self._repeat)

    def _repeat(self) -> None:
        """A lost message costs one interval: say again what is watched and was heard."""
        assert self._repeating
        self._repeating = False
        idle = [log for log, watched in self._watched.items() if not watched.listeners]
        for log in idle:
            del self._watched[log]
        if idle:
            self._outbox.tell_metadata(Unwatch(idle))
        if self._watched:
            self.repeat_all()
            self._repeat_later()

    def _known(self, log: LogId, watched: _Watched) -> tuple[LogId, int]:
        if watched.latest is None or watched.repeat_wanted:
            return (log, 0)
        return (log, watched.latest.version)
