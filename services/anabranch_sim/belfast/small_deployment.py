"""A deployment so small that all that can happen in it can be tried: every move is chosen.

One sequencer, two shards of one replica each, a client. Nothing takes time but waiting: a timer is
due when nothing else is left to do, unless it is chosen before its turn.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from anabranch.core.belfast.invariants.witness import Witness
from anabranch.core.belfast.ledger.rules import Rules
from anabranch.core.belfast.protocol.messages import (
    Append,
    Appended,
    Confirmed,
    Delivered,
    Eras,
    Failed,
    Subscribe,
)
from anabranch.core.belfast.sequencer.sequencer import Sequencer
from anabranch.core.belfast.shard.config import ShardConfig
from anabranch.core.belfast.shard.shard import Shard
from anabranch.core.consensus.consensus import ConsensusTiming
from anabranch.core.history.calls import Verdict
from anabranch.core.history.foretold import (
    Follower,
    Placing,
    Resumed,
    Settled,
    Shown,
    Voided,
    Watching,
    judge,
)
from anabranch.core.limits import Limits
from anabranch.core.machine import (
    CancelTimer,
    Effect,
    EntriesRead,
    Event,
    Gone,
    Linked,
    Machine,
    Persist,
    Persisted,
    ReadEntries,
    Received,
    Replies,
    Reply,
    Request,
    SaveSnapshot,
    Send,
    SetTimer,
    SnapshotSaved,
    TimerFired,
)
from anabranch.core.types import Nanoseconds
from anabranch.ports import Recovered, Snapshot
from anabranch_sim.belfast.deployment import observe_commits
from anabranch_sim.belfast.fingerprint import likeness
from anabranch_sim.belfast.message_clients import Archive
from anabranch_sim.world.node import EPOCH

SEQUENCER, SHARDS = "seq", ("a", "b")
CLIENT = "client"
WINDOWS = 2
_PAUSE = 6
"""Steps before the client asks again."""

RULES = Rules(
    t_ord_us=10_000,
    window=2,
    ahead_rounds=1,
    quota_change=False,
    adaptive=False,
    silent_intervals=8,
    fail_intervals=20,
)
_TIMING = ConsensusTiming(heartbeat_ms=50, election_ms=500)

Link = tuple[str, str]


@dataclass(slots=True)
class Place:
    """A node: its machine, and the disk that outlives it."""

    name: str
    machine: Machine | None = None
    entries: list[bytes] = field(default_factory=list[bytes])
    snapshot: Snapshot | None = None
    timers: dict[str, Nanoseconds] = field(default_factory=dict[str, Nanoseconds])


@dataclass(slots=True)
class Errand:
    """What the client wants of one shard: to follow it, and one batch appended."""

    shard: str
    number: int
    batch: bytes
    placing: Placing
    watching: Watching
    follower: Follower
    subscribed: bool = False
    appending: bool = False
    asked: int = -_PAUSE


class SmallDeployment:
    def __init__(self, quotas: tuple[int, int]) -> None:
        self.now: Nanoseconds = EPOCH
        self.steps = 0
        self.witness = Witness()
        self.places = {name: Place(name) for name in (SEQUENCER, *SHARDS)}
        self.gone: str | None = None
        """A node that died and won't be back."""
        self._quotas = dict(zip(SHARDS, quotas, strict=True))
        self._queues: dict[Link, deque[tuple[int, Event]]] = {}
        self._writing: dict[str, list[bytes]] = {}
        self._serial = 0
        self._tokens = 0
        self._asked: dict[int, Callable[[Any], None]] = {}
        self._archive = Archive()
        self._errands = [self._errand(number, name) for number, name in enumerate(SHARDS, 1)]
        for place in self.places.values():
            self.witness.add_replica(place.name, place.name)
            self._live(place)

    def _errand(self, number: int, shard: str) -> Errand:
        placing = self._archive.placing(number, shard, 1)
        batch = self._archive.batch(placing, number, 0)
        watching = Watching(shard, 0, (shard,))
        self._archive.account.watchings.append(watching)
        return Errand(shard, number, batch, placing, watching, Follower(0, 0))

    def links(self) -> list[Link]:
        """Where something is on its way, the oldest first."""
        busy = [(queue[0][0], link) for link, queue in self._queues.items() if queue]
        return [link for _, link in sorted(busy)]

    def timer(self) -> tuple[str, str] | None:
        """The next that is due: whose, and which."""
        due = [
            (at, name, key)
            for name, place in self.places.items()
            for key, at in place.timers.items()
        ]
        return min(due)[1:] if due else None

    def proceed(self) -> None:
        """What comes next if nothing is in its way."""
        links = self.links()
        if links:
            self.deliver(links[0])
        else:
            self.fire()

    def deliver(self, link: Link) -> None:
        self.steps += 1
        _, event = self._queues[link].popleft()
        self._step(self.places[link[1]], event)

    def lose(self, link: Link) -> None:
        self.steps += 1
        self._queues[link].popleft()

    def fire(self) -> None:
        self.steps += 1
        timer = self.timer()
        assert timer is not None, "somebody always waits for something"
        name, key = timer
        place = self.places[name]
        self.now = max(self.now, place.timers.pop(key))
        self._step(place, TimerFired(key))

    def crash(self, name: str, *, back: bool) -> None:
        """What isn't in the journal is lost, and what was on its way to or from there."""
        self.steps += 1
        place = self.places[name]
        place.machine = None
        place.timers.clear()
        self._writing.pop(name, None)
        for link, queue in self._queues.items():
            if name in link:
                queue.clear()
        for errand in self._errands:
            if errand.shard == name:
                errand.subscribed = errand.appending = False
                errand.asked = self.steps
        if not back:
            self.gone = name
            return
        self._live(place)
        for other in self.places.values():
            if other is not place and other.machine is not None:
                self._put((name, other.name), Linked(name))
                self._put((other.name, name), Linked(other.name))

    def likeness(self) -> bytes:
        """Of all that decides what may happen from here on."""
        machines = [place.machine for place in self.places.values()]
        disks = [(place.entries, place.timers) for place in self.places.values()]
        moving = [(link, [event for _, event in self._queues[link]]) for link in self.links()]
        told = [(each.follower, each.placing.verdict) for each in self._errands]
        return likeness(self.now, machines, disks, moving, told)

    def complaints(self) -> list[str]:
        found = [*self.witness.violations, *self._archive.faults]
        found += [each.follower.broken for each in self._errands if each.follower.broken]
        return found

    @property
    def over(self) -> bool:
        """Two windows are cut, and whoever is alive has been told all."""
        ends = [window.end for window in self.witness.windows[:WINDOWS]]
        if len(ends) < WINDOWS or self.witness.ledger.confirmed < ends[-1]:
            return False
        living = [each for each in self._errands if each.shard != self.gone]
        return self.gone == SEQUENCER or all(
            each.placing.verdict is Verdict.OK
            and min(each.follower.confirmed, each.follower.upto) >= ends[-1]
            for each in living
        )

    def verdict(self) -> list[str]:
        """All that was wrong, once it is over."""
        account = self._archive.account
        for errand in self._errands:
            for position, record in errand.follower.final.items():
                if account.final.setdefault(position, record) != record:
                    return [f"F1: {position} holds two records"]
        account.end = min(each.follower.confirmed for each in self._errands)
        return self.complaints() + list(map(str, judge(account)))

    def speak(self) -> None:
        """The client asks for what it has not been given."""
        if not self.witness.windows:
            return
        for errand in self._errands:
            place = self.places[errand.shard]
            if place.machine is None or self.steps < errand.asked + _PAUSE:
                continue
            if not errand.subscribed:
                errand.subscribed, errand.asked = True, self.steps
                start = min(errand.follower.confirmed, errand.follower.upto)
                self._see(errand, Resumed(start))
                ask = Subscribe(errand.shard, start)
                self._ask(errand.shard, ask, lambda told, at=errand: self._shown(at, told))
            elif not errand.appending and errand.placing.verdict is Verdict.UNKNOWN:
                errand.appending, errand.asked = True, self.steps
                ask = Append(errand.batch)
                self._ask(errand.shard, ask, lambda told, at=errand: self._placed(at, told))

    def _ask(self, node: str, message: object, heard: Callable[[Any], None]) -> None:
        self._tokens += 1
        self._asked[self._tokens] = heard
        self._put((CLIENT, node), Request(self._tokens, message))

    def _shown(self, errand: Errand, told: Any) -> None:
        match told:
            case Delivered():
                self._see(errand, self._archive.shown(told))
            case Confirmed(_, upto):
                self._see(errand, Settled(upto))
            case Failed(since=since, shards=shards):
                self._see(errand, Voided(since, errand.shard not in shards))
            case Eras():
                pass
            case _:
                errand.subscribed, errand.asked = False, self.steps

    def _see(self, errand: Errand, sight: Shown | Settled | Voided | Resumed) -> None:
        errand.watching.sights.append(sight)
        errand.follower.take(sight)

    def _placed(self, errand: Errand, told: Any) -> None:
        if isinstance(told, Appended):
            placing = errand.placing
            placing.positions = [p for run in told.runs for p in range(run.first, run.end)]
            placing.returned, placing.verdict = self.steps, Verdict.OK
        else:
            errand.appending, errand.asked = False, self.steps

    def _live(self, place: Place) -> None:
        if place.name == SEQUENCER:
            sequencer = Sequencer(SEQUENCER, (SEQUENCER,), RULES, Limits(), _TIMING)
            observe_commits(sequencer, partial(self.witness.on_commit, SEQUENCER))
            first = place.snapshot.index + 1 if place.snapshot else 1
            sequencer.recover(Recovered(place.snapshot, first, place.entries[first - 1 :]))
            place.machine = sequencer
        else:
            place.machine = self._shard(place)
        self._perform(place, place.machine.start(self.now))

    def _shard(self, place: Place) -> Shard:
        config = ShardConfig(
            shard=place.name,
            node=place.name,
            replicas=(place.name,),
            sequencers=(SEQUENCER,),
            quota=self._quotas[place.name],
        )
        shard = Shard(config, Limits())
        shard.recover(place.snapshot.content if place.snapshot else None)
        first = place.snapshot.index if place.snapshot else 0
        for index, entry in enumerate(place.entries[first:], first + 1):
            shard.replayed(index, entry)
        return shard

    def _step(self, place: Place, event: Event) -> None:
        if place.machine is None:
            return
        if isinstance(event, Persisted):
            place.entries.extend(self._writing.pop(place.name))
        self._perform(place, place.machine.step(self.now, event))

    def _perform(self, place: Place, effects: tuple[Effect, ...]) -> None:
        for effect in effects:
            self.witness.observe(place.name, effect)
            self._do(place, effect)

    def _do(self, place: Place, effect: Effect) -> None:
        name = place.name
        match effect:
            case Send(to, message):
                self._put((name, to), Received(name, message))
            case Reply(token, message):
                self._asked[token](message)
            case Replies(tokens, messages):
                for token, message in zip(tokens, messages, strict=True):
                    self._asked[token](message)
            case SetTimer(key, at):
                place.timers[key] = at
            case CancelTimer(key):
                place.timers.pop(key, None)
            case Persist(entries):
                self._writing[name] = list(entries)
                self._put((f"{name}'s disk", name), Persisted(len(place.entries) + len(entries)))
            case SaveSnapshot(index, image):
                place.snapshot = Snapshot(index, image)
                self._put((f"{name}'s disk", name), SnapshotSaved(index))
            case ReadEntries(token, first, upto):
                read = EntriesRead(token, place.entries[first - 1 : upto - 1])
                self._put((f"{name}'s disk", name), read)
            case _:
                raise AssertionError(f"{effect} isn't for a machine of Belfast")

    def _put(self, link: Link, event: Event | Gone) -> None:
        self._serial += 1
        self._queues.setdefault(link, deque()).append((self._serial, event))
