"""Follows the journal in a thread: every entry once and in order, whatever happens to the watch.

A watch is only a hint that there is more. What it tells is taken if it continues what was told
before; if it doesn't, or the watch ends or has gone deaf, the journal is read from there on.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from threading import Thread

from anabranch.core.errors import AccessDenied, AnabranchError, Damage, Retry
from anabranch.shell.etcd.api.calls import Compacted
from anabranch.shell.etcd.api.client import prefix_end
from anabranch.shell.etcd.api.etcd_pb2 import Event
from anabranch.shell.etcd.api.watch import Changed, Ended, Watch, WatchEvent
from anabranch.shell.etcd.group.reader import JournalReader
from anabranch.shell.telemetry.log import Log

CHECK_S = 2.0
"""A watch that has told nothing for so long is checked: it may have gone deaf."""
RETRY_S = 0.2
ENTRIES_AT_ONCE = 256
"""Told in one piece, so that who is told does other things in between."""


@dataclass(frozen=True, slots=True)
class _Follow:
    after: int | None


@dataclass(frozen=True, slots=True)
class _Finish:
    then: Callable[[int], None]


@dataclass(frozen=True, slots=True)
class _Stop:
    pass


class Follower:
    """Tells `followed(first, entries)`, and `restored(index, image)` where entries are gone.

    Both are called by its thread, as is `failed` when the journal is damaged: it then rests.
    """

    def __init__(
        self,
        reader: JournalReader,
        log: Log,
        *,
        followed: Callable[[int, Sequence[bytes]], None],
        restored: Callable[[int, bytes], None],
        failed: Callable[[AnabranchError], None],
        check_s: float = CHECK_S,
    ) -> None:
        self._reader = reader
        self._log = log
        self._followed = followed
        self._restored = restored
        self._failed = failed
        self._check_s = check_s
        self._inbox = SimpleQueue[_Follow | _Finish | _Stop | WatchEvent]()
        self._last = 0
        self._seen = 0
        """The last entry found to be journaled by a check of the watch."""
        self._following = False
        self._finish: _Finish | None = None
        self._watch: Watch | None = None
        self._trouble = ""
        self._stopped = False
        self._thread = Thread(target=self._run, name="etcd-follower", daemon=True)
        self._thread.start()

    @property
    def standing(self) -> bool:
        """Everything journaled was told when this was looked at last, and more would be."""
        return self._watch is not None and not self._trouble

    @property
    def journaled(self) -> int:
        """The last entry known to be there, told or not."""
        return max(self._last, self._seen)

    def follow(self, after: int) -> None:
        """Tell what comes after this entry, from now on."""
        self._inbox.put(_Follow(after))

    def resume(self) -> None:
        """Go on behind what was told last."""
        self._inbox.put(_Follow(None))

    def finish(self, then: Callable[[int], None]) -> None:
        """Tell everything that is in the journal now, call `then` with its last index, and rest."""
        self._inbox.put(_Finish(then))

    def stop(self) -> None:
        """Nothing is told after this."""
        self._inbox.put(_Stop())
        self._thread.join()

    def _run(self) -> None:
        while not self._stopped:
            pause_s: float | None = self._check_s if self._watch else None
            try:
                if self._watch is None and (self._following or self._finish):
                    self._look()
                    continue
            except Compacted:
                continue
            except (Retry, AccessDenied) as error:
                self._troubled(error)
                pause_s = RETRY_S
            except Damage as error:
                self._rest()
                self._failed(error)
                continue
            self._wait(pause_s)

    def _wait(self, pause_s: float | None) -> None:
        try:
            self._take(self._inbox.get(timeout=pause_s))
        except Empty:
            self._check()

    def _take(self, item: _Follow | _Finish | _Stop | WatchEvent) -> None:
        match item:
            case _Follow(after):
                self._last = self._last if after is None else after
                self._following = True
                self._drop_watch()
            case _Finish():
                self._finish = item
                self._drop_watch()
            case _Stop():
                self._stopped = True
                self._drop_watch()
            case Changed(watch, events):
                if watch is self._watch and not self._take_events(events):
                    self._drop_watch()
            case Ended(watch, error):
                if watch is self._watch:
                    self._watch = None
                    if not isinstance(error, Compacted):
                        self._troubled(error)

    def _look(self) -> None:
        """Read to the end; then watch, or tell that this is the end."""
        look = self._reader.read_after(self._last)
        if look.recovered.snapshot is not None:
            self._restored(look.recovered.snapshot.index, look.recovered.snapshot.content)
            self._last = look.recovered.snapshot.index
        self._tell(look.recovered.entries)
        if self._trouble:
            self._log.info("following the journal again", entry=self._last)
            self._trouble = ""
        if self._finish is not None:
            then = self._finish.then
            self._rest()
            then(self._last)
            return
        groups = self._reader.keys.groups
        self._watch = self._reader.client.watch(
            groups, prefix_end(groups), look.revision + 1, self._inbox.put
        )

    def _take_events(self, events: Sequence[Event]) -> bool:
        """Whether they continue what was told."""
        entries: list[bytes] = []
        last = self._last
        for event in events:
            if event.type != Event.PUT:
                continue
            try:
                group = self._reader.group(event.kv)
            except (Compacted, Retry, AccessDenied, Damage):
                # Told again, and judged, by a look.
                break
            if group.last <= last:
                continue
            if group.first > last + 1:
                break
            entries += group.entries[last + 1 - group.first :]
            last = group.last
        else:
            self._tell(entries)
            return True
        self._tell(entries)
        return False

    def _tell(self, entries: Sequence[bytes]) -> None:
        for start in range(0, len(entries), ENTRIES_AT_ONCE):
            piece = entries[start : start + ENTRIES_AT_ONCE]
            self._followed(self._last + 1, piece)
            self._last += len(piece)

    def _check(self) -> None:
        """A watch whose member is cut off from the others, or whose connection is dead, is mute."""
        if self._watch is None:
            return
        try:
            self._seen = self._reader.last()
            deaf = self._seen > self._last
        except (Retry, AccessDenied, Damage):
            deaf = True
        if deaf:
            self._watch.leave()
            self._watch = None

    def _rest(self) -> None:
        self._following = False
        self._finish = None
        self._drop_watch()

    def _drop_watch(self) -> None:
        if self._watch is not None:
            self._watch.cancel()
            self._watch = None

    def _troubled(self, error: Exception) -> None:
        """Said once, until it is over."""
        if not self._trouble:
            self._log.warning("the journal can't be followed now", reason=str(error))
        self._trouble = str(error)
