"""Who watches which log, and what they must be told after the state has changed."""

from collections.abc import Iterable

from anabranch.core.bolt.logs.forest import Family, Log
from anabranch.core.bolt.protocol.letters import Moved
from anabranch.core.bolt.state.replica import Replica
from anabranch.core.errors import AnabranchError
from anabranch.core.errors.refused import Refused
from anabranch.core.types import LogId, Nanoseconds, Position


class Watcher:
    """One node's watch of one log, and what it was told last."""

    __slots__ = ("family", "log", "node", "own_generation", "told", "until")

    def __init__(self, node: str, log: Log, until: Nanoseconds) -> None:
        self.node = node
        self.log = log
        self.family = log.family
        self.until = until
        self.told: Moved | None = None
        self.own_generation = log.generation


class Watches:
    """Watchers by log and by family: a command moves only logs of the families it touches."""

    def __init__(self, replica: Replica) -> None:
        self.replica = replica
        self.watchers: dict[tuple[str, LogId], Watcher] = {}
        self.families: dict[Family, dict[tuple[str, LogId], Watcher]] = {}

    def watch(self, node: str, id: LogId, version: int, until: Nanoseconds) -> Moved | None:
        """Begin or renew; what to say at once, if the node doesn't know it yet."""
        key = (node, id)
        watcher = self.watchers.get(key)
        if watcher is None:
            try:
                log = self.replica.forest.find_own(id, "subscription")
            except AnabranchError as error:
                return self._ended(id, error)
            watcher = self.watchers[key] = Watcher(node, log, until)
            self.families.setdefault(watcher.family, {})[key] = watcher
        watcher.until = until
        if watcher.told is None or watcher.told.version != version:
            watcher.told = self._now(watcher)
            return watcher.told
        return None

    def unwatch(self, node: str, id: LogId) -> None:
        self._drop((node, id))

    def lapse(self, now: Nanoseconds) -> None:
        """Forget watches that were not repeated."""
        for key in [key for key, watcher in self.watchers.items() if watcher.until < now]:
            self._drop(key)

    def news(self, families: Iterable[Family]) -> list[tuple[str, Moved]]:
        """What changed for whom, after commands that touched these families."""
        found: list[tuple[str, Moved]] = []
        for family in families:
            for key, watcher in list(self.families.get(family, {}).items()):
                moved = self._changed(watcher)
                if moved is None:
                    continue
                watcher.told = moved
                found.append((watcher.node, moved))
                if moved.ended is not None:
                    self._drop(key)
        return found

    def _changed(self, watcher: Watcher) -> Moved | None:
        assert self.watchers[watcher.node, watcher.log.id] is watcher
        moved = self._now(watcher)
        told = watcher.told
        if told is None or moved.ended is not None:
            return moved
        same = (
            moved.tail == told.tail
            and moved.settled == told.settled
            and moved.generation == told.generation
            and moved.append_blocked == told.append_blocked
            and moved.undecided == told.undecided
        )
        return None if same else moved

    def _now(self, watcher: Watcher) -> Moved:
        forest, log = self.replica.forest, watcher.log
        if forest.logs.get(log.id) is not log:
            try:
                forest.find(log.id)
            except AnabranchError as error:
                return self._ended(log.id, error)
        settled, undecided = forest.settled(log)
        blocked = forest.blocked_by(log) if forest.undecided else None
        assert settled <= forest.tail(log)
        generation = forest.lineage_generation(log)
        diverges = self._diverges(watcher, generation)
        watcher.own_generation = log.generation
        return Moved(
            log=log.id,
            version=self.replica.applied,
            tail=forest.tail(log),
            settled=settled,
            generation=generation,
            diverges=diverges,
            append_blocked=blocked.name if blocked else None,
            undecided=undecided.name if undecided else None,
            after=watcher.told.version if watcher.told else -1,
        )

    def _diverges(self, watcher: Watcher, generation: int) -> Position:
        """Up to where records stayed as they were told; what was settled then always did."""
        assert watcher.told is None or watcher.told.generation <= generation, (
            "generations only grow"
        )
        told, log = watcher.told, watcher.log
        if told is None:
            return 0
        if generation == told.generation:
            return told.tail
        own = [shift for shift in log.shifts if shift.generation > watcher.own_generation]
        moved_here = log.generation - watcher.own_generation == generation - told.generation
        if not moved_here or not own or own[0].since > watcher.own_generation:
            return told.settled
        return min((s.thresholds[0] for s in own if s.thresholds), default=told.tail)

    def _ended(self, id: LogId, error: AnabranchError) -> Moved:
        return Moved(
            log=id,
            version=self.replica.applied,
            tail=0,
            settled=0,
            generation=0,
            diverges=0,
            ended=Refused.of(error),
        )

    def _drop(self, key: tuple[str, LogId]) -> None:
        watcher = self.watchers.pop(key, None)
        if watcher is None:
            return
        of_family = self.families[watcher.family]
        assert of_family[key] is watcher
        del of_family[key]
        if not of_family:
            del self.families[watcher.family]
