"""Processes that belong together, until a signal ends them: what ends by itself is started again,
ever more slowly.
"""

import signal
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Protocol

from anabranch.apps.listeners import owner
from anabranch.apps.process import ending_signals
from anabranch.apps.processes.ports import is_free
from anabranch.apps.processes.servers import ServerProcess
from anabranch.core.errors import Unavailable
from anabranch.shell.telemetry.log import Log

LOOK_S = 0.2
_PAUSE_S_MAX = 10.0
_STEADY_S = 30.0
"""Whoever ran so long may be started again at once."""


class Watch:
    """Starts again what has ended by itself."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._failures = defaultdict[str, int](int)
        self._due = defaultdict[str, float](float)
        self._begun = defaultdict[str, float](time.monotonic)

    def look(self, processes: Sequence[ServerProcess]) -> None:
        now = time.monotonic()
        for process in processes:
            if process.running:
                continue
            name = process.name
            if not self._due[name]:
                if now - self._begun[name] > _STEADY_S:
                    self._failures[name] = 0
                pause_s = min(_PAUSE_S_MAX, 0.5 * 2 ** self._failures[name] - 0.5)
                self._failures[name] += 1
                self._due[name] = now + pause_s
                self._log.warning(
                    "a process ended by itself",
                    process=name,
                    how=process.ending,
                    again_in_s=pause_s,
                    output=str(process.output),
                )
            if now >= self._due[name]:
                self._due[name], self._begun[name] = 0.0, now
                process.launch()
                self._log.info("started again", process=name, pid=process.pid)


@dataclass(frozen=True, slots=True)
class Listener:
    """A port on loopback that one of the processes is about to listen at."""

    name: str
    host: str
    port: int


class Supervised(Protocol):
    """Processes that belong together."""

    @property
    def listeners(self) -> Sequence[Listener]: ...

    @property
    def processes(self) -> Sequence[ServerProcess]: ...

    def start(self, told: Callable[[str], None]) -> None: ...

    def stop(self) -> None: ...

    def kill(self) -> None: ...

    def tend(self) -> None:
        """Called every so often, by the thread that started the processes."""
        ...


def run_until_told(cluster: Supervised, log: Log, serving: Callable[[], None]) -> None:
    """Until a signal says so; the second signal kills. No process outlives this one."""
    _refuse_taken(cluster.listeners)
    ServerProcess.tethered = True
    signals = _EndingSignals()

    for number in ending_signals():
        signal.signal(number, signals.handle)
    cluster.start(lambda what: log.info("starting", what=what))
    try:
        signals.serving = True
        serving()
        watch = Watch(log)
        while not signals.wait(LOOK_S):
            cluster.tend()
            watch.look(cluster.processes)
        log.info("stopping")
        cluster.stop()
    finally:
        cluster.kill()


class _EndingSignals:
    """The first signal asks the supervisor to stop; one before it serves, or a second one, ends it
    at once.
    """

    def __init__(self) -> None:
        self.serving = False
        self._stopping = False
        # An Event isn't safe here: a handler that sets it while its own thread holds the event's
        # lock, on the way into `wait`, never returns.
        self._first = SimpleQueue[None]()

    def handle(self, number: int, frame: object) -> None:
        if self._stopping or not self.serving:
            raise Unavailable("the cluster", "it was told to end at once")
        self._stopping = True
        self._first.put(None)

    def wait(self, timeout_s: float) -> bool:
        """True once the first signal has come."""
        try:
            self._first.get(timeout=timeout_s)
        except Empty:
            return False
        return True


def _refuse_taken(listeners: Sequence[Listener]) -> None:
    """Refuse to start beside a process that has one of our ports: clients would find that one."""
    for each in listeners:
        if not is_free(each.port):
            by = owner(each.port) or "another process"
            reason = f"{each.name} listens there, and {by} has the port: end that process first"
            raise Unavailable(f"{each.host}:{each.port}", reason)
