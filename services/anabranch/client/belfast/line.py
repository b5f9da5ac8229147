"""What the parts of a session share, and the lines on which they talk to nodes.

What is asked on a line before the node has let us in waits for that. A line that breaks, or never
comes to be, loses all that was asked on it: whoever asked is told, and asks elsewhere or again.
"""

from collections.abc import Callable, Iterable
from typing import Protocol

from anabranch.client.belfast.effects import Dial, Effect, HangUp, Roomy, Transmit
from anabranch.client.belfast.settings import Settings
from anabranch.core.alarms import Alarm, Alarms
from anabranch.core.belfast.protocol.messages import Locate, ToClient, ToServer, Welcome
from anabranch.core.errors import AnabranchError, Retry, Unavailable
from anabranch.core.limits import Limits
from anabranch.core.machine import Effect as Timing
from anabranch.core.types import Milliseconds, Nanoseconds
from anabranch.core.wire.session import Cancel

RandomBits = Callable[[int], int]
"""So many random bits as a number: `secrets.randbits`, or a simulation's seeded source."""

Replies = Iterable[tuple[int, ToClient]]

_REQUESTS = (1 << 32) - 1
_DOUBLINGS_MAX = 20
_JITTER_BITS = 10


class Listener(Protocol):
    """Whoever asked something."""

    def heard(self, message: ToClient) -> None: ...

    def lost(self, *, sent: bool) -> None:
        """The line broke: there will be no answer. What was sent may have been done."""
        ...


class Commons:
    """What all parts of one session share."""

    def __init__(self, cluster: str, settings: Settings, randbits: RandomBits) -> None:
        limits = Limits()
        self.cluster = cluster
        self.settings = settings
        self.randbits = randbits
        self.effects: list[Effect] = []
        self.timing: list[Timing] = []
        self.alarms = Alarms(self.timing)
        self.record_bytes_max = limits.record_bytes_max
        self.batch_bytes_max = limits.batch_bytes_max
        self.batch_records_max = limits.batch_records_max
        self.pending_bytes = 0
        self.wants_room = False
        self.troubles: dict[str, str] = {}
        """Why each node can't be talked to."""
        self.let_in = False
        self._lines: dict[str, Line] = {}

    @property
    def now(self) -> Nanoseconds:
        return self.alarms.now

    @property
    def trouble(self) -> str:
        return "; ".join(self.troubles.values()) or "no node has answered yet"

    @property
    def batch_bytes(self) -> int:
        return min(self.settings.batch_bytes, self.batch_bytes_max)

    def line(self, node: str) -> "Line":
        line = self._lines.get(node)
        if line is None:
            line = self._lines[node] = Line(self, node)
        return line

    def lines(self) -> list["Line"]:
        return list(self._lines.values())

    def opened(self, welcome: Welcome) -> None:
        self.let_in = True
        self.batch_bytes_max = welcome.batch_bytes_max
        self.batch_records_max = welcome.batch_records_max

    def released(self, size: int) -> None:
        """So many bytes of appends aren't pending any more."""
        self.pending_bytes -= size
        if self.wants_room and self.pending_bytes <= self.settings.pending_bytes_max // 2:
            self.wants_room = False
            self.effects.append(Roomy())

    def pause(self, tries: int) -> Milliseconds:
        """How long to wait after so many failed tries: doubling, and no two clients in step."""
        settings = self.settings
        doubled = settings.backoff_ms << min(max(tries - 1, 0), _DOUBLINGS_MAX)
        half = max(1, min(doubled, settings.backoff_ms_max) // 2)
        return half + (half * self.randbits(_JITTER_BITS) >> _JITTER_BITS)


class Line:
    """To one node."""

    def __init__(self, commons: Commons, node: str) -> None:
        self.node = node
        self.up = False
        """Since it let us in, until the connection breaks."""
        self.refusal: AnabranchError | None = None
        """Why it won't let us in at all."""
        self._commons = commons
        self._dialed = False
        self._waiting: dict[int, ToServer] = {}
        self._listening: dict[int, Listener] = {}
        self._request = 0
        self._heard = self._probed = False
        self._probe = 0
        self._alarm: Alarm | None = None

    def ask(self, listener: Listener, message: ToServer) -> int:
        """Send, and hear whatever is answered until `unheard`."""
        request = self._next()
        self._listening[request] = listener
        if self.up:
            self._commons.effects.append(Transmit(self.node, request, message))
        else:
            self._waiting[request] = message
            self._dial()
        return request

    def tell(self, message: ToServer) -> None:
        """Send what has no answer, if there is anybody to hear it."""
        if self.up:
            self._commons.effects.append(Transmit(self.node, self._next(), message))

    def unheard(self, request: int) -> None:
        self._listening.pop(request, None)

    def cancel(self, request: int) -> None:
        """Nobody wants the answer, and the node may spare itself it."""
        known = self._listening.pop(request, None)
        if self._waiting.pop(request, None) is None and known is not None:
            self.tell(Cancel(request))

    def connected(self, welcome: Welcome) -> None:
        commons = self._commons
        if welcome.cluster != commons.cluster:
            self.hang_up(f"it belongs to {welcome.cluster}, not to {commons.cluster}")
            return
        self.up = self._heard = True
        self._probed, self.refusal = False, None
        commons.troubles.pop(self.node, None)
        commons.opened(welcome)
        self._watch()
        waiting, self._waiting = self._waiting, {}
        for request, message in waiting.items():
            commons.effects.append(Transmit(self.node, request, message))

    def hear(self, replies: Replies) -> None:
        self._heard = True
        for request, message in replies:
            listener = self._listening.get(request) if self.up else None
            if listener is not None:
                listener.heard(message)

    def heard(self, message: ToClient) -> None:
        """The sign of life that was asked for: that it came is all that it says."""
        self.unheard(self._probe)

    def lost(self, *, sent: bool) -> None:
        """Of the sign of life: the line knows."""

    def broken(self, reason: str, refusal: AnabranchError | None = None) -> None:
        self._dialed = self.up = False
        if refusal is not None and not isinstance(refusal, Retry):
            self.refusal = refusal
        shown = reason if self.node in reason else f"{self.node}: {reason}"
        self._commons.troubles[self.node] = shown
        if self._alarm is not None:
            self._alarm.cancel()
        listening, self._listening = self._listening, {}
        waiting, self._waiting = self._waiting, {}
        for request, listener in listening.items():
            listener.lost(sent=request not in waiting)

    def hang_up(self, reason: str) -> None:
        if self._dialed:
            self._commons.effects.append(HangUp(self.node))
            self.broken(reason)

    def _dial(self) -> None:
        if not self._dialed:
            self._dialed = True
            self._commons.troubles.setdefault(self.node, f"{self.node} doesn't answer")
            self._commons.effects.append(Dial(self.node))

    def _watch(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
        self._alarm = self._commons.alarms.after(self._commons.settings.silence_ms, self._look)

    def _look(self) -> None:
        """Is it still there? Only one that owes an answer is expected to speak."""
        if self._heard or not self._listening:
            self._probed = False
        elif not self._probed:
            self._probed = True
            self._probe = self.ask(self, Locate())
        else:
            silence_ms = 2 * self._commons.settings.silence_ms
            self.hang_up(f"it was silent for {silence_ms} ms")
            return
        self._heard = False
        self._watch()

    def _next(self) -> int:
        self._request = self._request % _REQUESTS + 1
        while self._request in self._listening:
            self._request = self._request % _REQUESTS + 1
        return self._request


def unavailable(commons: Commons, what: str) -> AnabranchError:
    """What is said of something that nobody could be asked: a refusal, if that is why."""
    refusals = [line.refusal for line in commons.lines() if line.refusal is not None]
    if refusals and not commons.let_in:
        return refusals[0]
    return Unavailable(what, commons.trouble)
