"""What an operator's watches and lists show it: late, twice, cut off, out of order, or never.

As `handlers/watch_check.py` has it, on simulated time: streams by kind, each compared with lists
now and then by the real `Roll`.
"""

from bisect import bisect_right
from collections.abc import Callable
from functools import partial

from msgspec import Struct

from anabranch.core.types import MS, Nanoseconds
from anabranch_operator.api import names
from anabranch_operator.plan.election.watch_health import Roll, Sighting
from anabranch_operator.plan.engine.events import Event, Gone, Listed, Seen
from anabranch_operator.plan.engine.objects import Observed, Ref
from anabranch_sim.kubernetes.cluster.apiserver import ApiServer
from anabranch_sim.kubernetes.cluster.objects import Change
from anabranch_sim.kubernetes.cluster.waiting import Turn
from anabranch_sim.world.events import SECOND

KINDS = (
    names.POOL,
    names.LOG,
    names.FORK,
    "Pod",
    "Service",
    "EndpointSlice",
    "Job",
    "PodDisruptionBudget",
    "StatefulSet",
    "Node",
)
BLIND_S = 120.0
_FIRST: Nanoseconds = SECOND


class WatchFaults(Struct, frozen=True):
    """How watches fare; all zero is a good day."""

    late: float = 0.0
    """So many events come seconds late, and what follows of their kind with them."""
    twice: float = 0.0
    lost: float = 0.0
    """So many events are never shown."""
    stale: float = 0.0
    """So many lists are of a while ago."""


class History:
    """What happened to each kind, for those who watch or list it."""

    def __init__(self) -> None:
        self._changes: dict[str, list[Change]] = {}
        self._versions: dict[str, list[int]] = {}

    def add(self, change: Change) -> None:
        kind = change.object.ref.kind
        self._changes.setdefault(kind, []).append(change)
        self._versions.setdefault(kind, []).append(change.version)

    def since(self, kind: str, version: int) -> list[Change]:
        first = bisect_right(self._versions.get(kind, []), version)
        return self._changes.get(kind, [])[first:]

    def listing(self, kind: str, version: int) -> dict[Ref, Observed]:
        """All objects of a kind as they were at that version."""
        found: dict[Ref, Observed] = {}
        for change in self._changes.get(kind, ()):
            if change.version > version:
                break
            if change.gone:
                found.pop(change.object.ref, None)
            else:
                found[change.object.ref] = change.object
        return found


class _Stream:
    """One watch, from when it was opened."""

    def __init__(self, kind: str, version: int) -> None:
        self.kind = kind
        self.version = version
        """Up to here it has been shown, or is about to be."""
        self.last: Nanoseconds = 0
        self.cut = False
        self.roll = Roll(BLIND_S)
        self.told = False


class SimWatches:
    """The eyes of one life of an operator."""

    def __init__(
        self,
        api: ApiServer,
        history: History,
        give: Callable[[Event], None],
        turn: Turn,
        blind: Callable[[str], None],
        sweep_s: int,
        kinds: tuple[str, ...],
    ) -> None:
        self.watch_faults = WatchFaults()
        self._api = api
        self._world = api.world
        self._history = history
        self._give = give
        self._turn = turn
        self._blind = blind
        self._sweep_s = sweep_s
        self._leaving: dict[str, None] = {}
        self._looking: dict[str, None] = {}
        self.streams = {kind: _Stream(kind, 0) for kind in kinds}

    def open(self, watch_faults: WatchFaults) -> None:
        self.watch_faults = watch_faults
        for stream in self.streams.values():
            self._world.after(self._world.between(0, SECOND // 2), partial(self._list, stream))
            self._world.after(_FIRST, partial(self._turn, partial(self._sweep, stream)))

    def on_change(self, change: Change) -> None:
        """Something has changed, and the API server tells whoever is connected."""
        stream = self.streams.get(change.object.ref.kind)
        if stream is not None and not stream.cut and stream.version:
            self._show(stream, change)

    def on_answer(self, object: Observed) -> None:
        """In the answer to a write."""
        stream = self.streams.get(object.ref.kind)
        if stream is not None:
            stream.roll.overhear(object.ref, Sighting(object.uid, object.version))

    def cut(self, kind: str, duration: Nanoseconds, *, forgotten: bool) -> None:
        """A watch ends; later it goes on where it was, or has to list if that is forgotten."""
        stream = self.streams[kind]
        if stream.cut or not stream.version:
            return
        stream.cut = True
        again = self._list if forgotten else self._resume
        self._world.after(duration, partial(again, stream))

    def _list(self, stream: _Stream) -> None:
        """Everything anew; what has ended meanwhile isn't told."""
        if self._api.away:
            self._world.after(SECOND, partial(self._list, stream))
            return
        stream.cut = False
        stream.version = self._as_of()
        for object in self._history.listing(stream.kind, stream.version).values():
            self._post(stream, partial(self._told, stream, object, anew=True))
        self._catch_up(stream)

    def _resume(self, stream: _Stream) -> None:
        if self._api.away:
            self._world.after(SECOND, partial(self._resume, stream))
            return
        stream.cut = False
        self._catch_up(stream)

    def _catch_up(self, stream: _Stream) -> None:
        for change in self._history.since(stream.kind, stream.version):
            self._show(stream, change)
        stream.version = max(stream.version, 1)

    def _show(self, stream: _Stream, change: Change) -> None:
        stream.version = change.version
        if self._world.chance(self.watch_faults.lost):
            return
        if change.gone:
            tell = partial(self._ended, stream, change.object)
        else:
            tell = partial(self._told, stream, change.object, anew=False)
        self._post(stream, tell)
        if self._world.chance(self.watch_faults.twice):
            self._post(stream, tell)

    def _post(self, stream: _Stream, tell: Callable[[], None]) -> None:
        world = self._world
        delay = world.between(MS, 20 * MS)
        if world.chance(self.watch_faults.late):
            delay = world.between(SECOND, 20 * SECOND)
        stream.last = max(stream.last, world.now + delay)
        world.at(stream.last, partial(self._turn, tell))

    def _told(self, stream: _Stream, object: Observed, *, anew: bool) -> None:
        again = stream.roll.tell(object.ref, Sighting(object.uid, object.version))
        if again and anew:
            self._compare(stream)
        self._give(Seen(object))
        self._heed_namespace(object)

    def _ended(self, stream: _Stream, object: Observed) -> None:
        stream.roll.forget(object.ref, object.uid)
        self._give(Gone(object.ref, object.uid))

    def _sweep(self, stream: _Stream) -> None:
        pause_s = float(self._sweep_s)
        if self._api.away:
            pause_s = 1.0
        else:
            self._compare(stream)
            if stream.roll.blind(self._world.now):
                self._blind(f"the watch of {stream.kind} doesn't show what lists have")
                return
            if not stream.roll.listed:
                pause_s = 1.0
            elif stream.roll.owes:
                pause_s = BLIND_S
        again = partial(self._turn, partial(self._sweep, stream))
        self._world.after(round(pause_s * SECOND), again)

    def _compare(self, stream: _Stream) -> None:
        version = self._as_of()
        found = {
            ref: Sighting(each.uid, each.version)
            for ref, each in self._history.listing(stream.kind, version).items()
        }
        for ref, uid in stream.roll.compare(found, version, self._world.now):
            self._give(Gone(ref, uid))
        if stream.roll.listed and not stream.told:
            stream.told = True
            self._give(Listed(stream.kind))

    def _as_of(self) -> int:
        """The version that a list is of: what it comes from may be a little behind."""
        now = self._api.kube.version
        if self._world.chance(self.watch_faults.stale):
            return max(1, now - self._world.between(1, 40))
        return now

    def _heed_namespace(self, object: Observed) -> None:
        """Is its namespace on its way out, with all that is in it?"""
        name = object.ref.namespace
        if not name or name in self._looking or not (object.deleting or name in self._leaving):
            return
        self._looking[name] = None
        ref = Ref("Namespace", "", name)
        self._world.after(
            self._world.between(MS, 50 * MS), partial(self._turn, partial(self._look_at, ref))
        )

    def _look_at(self, ref: Ref) -> None:
        self._looking.pop(ref.name, None)
        found = None if self._api.away else self._api.kube.get(ref)
        if found is None or not found.deleting:
            self._leaving.pop(ref.name, None)
        else:
            self._leaving[ref.name] = None
        if found is not None:
            self._give(Seen(found))
