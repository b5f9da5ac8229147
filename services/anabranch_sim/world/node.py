"""A node: the driver of one machine in the simulation, and how the machine dies and lives again.

Performs effects as core/machine.py demands of every driver.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Protocol, cast

import msgspec
from msgspec.structs import replace

from anabranch.core.errors import AnabranchError, StorageFailed, StorageFull
from anabranch.core.machine import (
    Campaign,
    CancelTimer,
    DeleteObjects,
    Effect,
    Effects,
    EntriesRead,
    Event,
    Follow,
    GetFailed,
    GetObject,
    Gone,
    ListObjects,
    ListQuarantine,
    Machine,
    ObjectPut,
    ObjectRead,
    ObjectsDeleted,
    ObjectsListed,
    ObjectsQuarantined,
    ObjectsReturned,
    Persist,
    Persisted,
    PersistFailed,
    PurgeQuarantine,
    PutFailed,
    PutObject,
    PutsSigned,
    PutTarget,
    QuarantineListed,
    QuarantineObjects,
    QuarantinePurged,
    RangesSigned,
    ReadEntries,
    ReadFailed,
    Received,
    Replies,
    Reply,
    Request,
    Resign,
    Rest,
    ReturnObjects,
    SaveSnapshot,
    Send,
    SetTimer,
    SignPuts,
    SignRanges,
    SnapshotSaved,
    TimerFired,
    Token,
)
from anabranch.core.records.objects import ObjectName, unquarantined
from anabranch.core.types import MS, Nanoseconds, ObjectId
from anabranch.core.wire.session import Cancel, Credit
from anabranch.ports import Journal, RecordJournal
from anabranch_sim.world.clocks import SlewedClock
from anabranch_sim.world.coordinator import SimCoordinator
from anabranch_sim.world.disk import PowerCut
from anabranch_sim.world.events import SECOND, World
from anabranch_sim.world.network import Network
from anabranch_sim.world.store import SimStore
from anabranch_sim.world.wire import Wire

EPOCH: Nanoseconds = 1_750_000_000 * SECOND
"""What a clock without an error shows when a simulation begins."""

RETRY: Nanoseconds = SECOND
"""Between attempts at what has no failure to report to a machine."""

_REQUEST_BITS = 32

_encode = msgspec.msgpack.Encoder().encode


class Caller(Protocol):
    """What asks a machine: one client's connection."""

    def answer(self, request: int, message: Any) -> None: ...

    def broken(self, reason: str) -> None: ...


class Surroundings:
    """What all nodes of a deployment share."""

    def __init__(
        self,
        world: World,
        cluster: str,
        network: Network,
        store: SimStore,
        wire: Wire,
    ) -> None:
        self.world = world
        self.cluster = cluster
        self.network = network
        self.store = store
        self.wire = wire
        self.is_fenced: Callable[[Machine], bool] = lambda _: False
        """Has another life of this node taken over?"""
        self.overhear: Callable[[str, Effect], None] | None = None
        """Receives everything that any node says, before it is on its way."""
        self.on_event: Callable[[str, Event], None] | None = None
        """Receives every event that any node is given, before its machine."""
        self.nodes: dict[str, Node] = {}
        self.doors: dict[str, Callable[[Node, Any], None]] = {}
        """Names to which letters leave the network of nodes, and who takes them there."""


class Node:
    """One machine, if it is alive, with its timers, callers and unfinished work."""

    def __init__(self, around: Surroundings, name: str, begin: Callable[["Node"], Machine]) -> None:
        self.around = around
        self.world = around.world
        self.name = name
        self.clients = around.wire.clients
        """How clients speak to it, where nodes have different kinds of clients."""
        self.begin = begin
        """Makes the machine of a new life, from what the last one left behind."""
        self.machine: Machine | None = None
        self.journal: Journal | None = None
        self.coordinator: SimCoordinator | None = None
        """Of this life, if its machine is a member of a metadata group."""
        self.life = 0
        self.clock = SlewedClock()
        self.sync_delay: Nanoseconds = MS // 10
        self.on_death: Callable[[], None] = lambda: None
        """The whole process goes: called where an operation of the disk found the power gone."""
        self.on_fenced: Callable[[], None] = lambda: None
        """Another life of this node has taken over: whoever runs processes ends this one."""
        self.on_rest: Callable[[], None] = lambda: None
        """What it had in hand is finished, after `Drain`."""
        self._paused = False
        self._missed: list[Callable[[], None]] = []
        self._timers: dict[str, int] = {}
        self._settings = 0
        self._callers: dict[int, Caller] = {}
        self._seats = 0
        around.nodes[name] = self

    @property
    def alive(self) -> bool:
        return self.machine is not None

    def now(self) -> Nanoseconds:
        now = self.world.now
        return EPOCH + now + self.clock.error(now)

    def start(self) -> None:
        assert self.machine is None
        self.life += 1
        self.clock.begin(self.world.now)
        self.machine = self.begin(self)
        if self.world.tracing:
            self.world.note(self.name, "lives", self.life)
        self._perform(self.machine.start(self.now()))

    def stop(self) -> None:
        """What it had begun is never reported to anyone."""
        if self.machine is None:
            return
        self.world.note(self.name, "dies")
        self.machine = self.journal = self.coordinator = None
        self.life += 1
        self._timers.clear()
        self._missed.clear()
        self._paused = False
        callers, self._callers = self._callers, {}
        for caller in callers.values():
            caller.broken(f"{self.name} has died")

    def pause(self, duration: Nanoseconds) -> None:
        """Everything that comes waits, timers as well: a stopped process, a long collection."""
        if self.machine is None or self._paused:
            return
        self.world.note(self.name, "pauses for", duration // MS)
        self._paused = True
        self.world.after(duration, partial(self._resume, self.life))

    def _resume(self, life: int) -> None:
        if life != self.life:
            return
        self._paused = False
        missed, self._missed = self._missed, []
        for action in missed:
            self.world.at(self.world.now, partial(self.act, life, action))

    def act(self, life: int, action: Callable[[], None]) -> None:
        """Something that this life's process does, when it runs."""
        if life != self.life or self.machine is None:
            return
        if self._paused:
            self._missed.append(action)
        else:
            action()

    def deliver(self, life: int, event: Event) -> None:
        """Give the machine one event, whole, and do what it says."""
        if life != self.life or self.machine is None:
            return
        if self._paused:
            self._missed.append(partial(self.deliver, life, event))
            return
        around, machine = self.around, self.machine
        if self.world.tracing:
            self.world.note(self.name, "<", event)
        if around.on_event is not None:
            around.on_event(self.name, event)
        self._perform(machine.step(self.now(), event))
        if around.is_fenced(machine):
            self.on_fenced()

    def receive(self, sender: str, message: bytes) -> None:
        """A datagram; it may be for whoever lives here by now."""
        if self.machine is not None:
            self.deliver(self.life, Received(sender, self.around.wire.letter(message)))

    def _perform(self, effects: Effects) -> None:
        life, tracing, overhear = self.life, self.world.tracing, self.around.overhear
        for effect in effects:
            if tracing:
                self.world.note(self.name, ">", effect)
            if overhear is not None:
                overhear(self.name, effect)
            self._do(effect)
            if life != self.life:
                return

    def _do(self, effect: Effect) -> None:
        match effect:  # the most frequent first
            case Send(to, message):
                self._send(to, message)
            case SetTimer(key, at):
                self._set_timer(key, at)
            case Reply(to, message):
                self._reply(to, message)
            case Replies(tokens, messages):
                for to, message in zip(tokens, messages, strict=True):
                    self._reply(to, message)
            case CancelTimer(key):
                self._timers.pop(key, None)
            case Persist() | SaveSnapshot() | Follow() | Campaign() | Resign():
                if self.coordinator is not None:
                    self._coordinate(self.coordinator, effect)
                else:
                    self._keep(effect)
            case Rest():
                self.on_rest()
            case PutObject(object, parts):
                self.around.store.put(
                    self._name(object), parts, partial(self._put, self.life, object)
                )
            case GetObject(token, object, start, length):
                told = partial(self._got, self.life, token)
                self.around.store.get(self._name(object), start, length, told)
            case SignRanges(token, ranges):
                urls = [self._name(object) for object, _, _ in ranges]
                self.world.after(0, partial(self._report, self.life, RangesSigned(token, urls)))
            case SignPuts(token, contents, valid_ms):
                headers = {"until": str(self.world.now + valid_ms * MS)}
                targets = [PutTarget(self._name(object), headers) for object, _, _ in contents]
                self.world.after(0, partial(self._report, self.life, PutsSigned(token, targets)))
            case DeleteObjects(objects):
                self._delete(self.life, objects)
            case QuarantineObjects(objects):
                self._quarantine(self.life, objects)
            case ReturnObjects(objects):
                self._return(self.life, objects)
            case PurgeQuarantine(objects):
                self._purge(self.life, objects)
            case ListQuarantine():
                self.around.store.in_quarantine(partial(self._quarantine_listed, self.life))
            case ListObjects():
                self.around.store.names(partial(self._listed, self.life))
            case ReadEntries():
                self.world.after(self._disk_delay(), partial(self._read, self.life, effect))

    def _send(self, to: str, message: Any) -> None:
        around = self.around
        if to in around.doors:
            around.doors[to](self, message)
            return
        arrive = partial(around.nodes[to].receive, self.name, _encode(message))
        around.network.carry(self.name, to, arrive)

    def _coordinate(
        self,
        coordinator: SimCoordinator,
        effect: Persist | SaveSnapshot | Follow | Campaign | Resign,
    ) -> None:
        match effect:
            case Persist(entries):
                coordinator.append(entries)
            case SaveSnapshot():
                coordinator.save(effect)
            case Follow(after):
                coordinator.follow(after)
            case Campaign():
                coordinator.campaign()
            case Resign():
                coordinator.resign()

    def _keep(self, effect: Persist | SaveSnapshot | Follow | Campaign | Resign) -> None:
        delay, life = self._disk_delay(), self.life
        match effect:
            case Persist():
                self.world.after(delay, partial(self._persist, life, effect))
            case SaveSnapshot():
                self.world.after(delay * 3, partial(self._save, life, effect))
            case _:
                raise AssertionError("only a member of a group has a coordinator")

    def _reply(self, to: Token, message: Any) -> None:
        caller = self._callers.get(to >> _REQUEST_BITS)
        if caller is not None:
            caller.answer(to & ((1 << _REQUEST_BITS) - 1), message)

    def _set_timer(self, key: str, at: Nanoseconds) -> None:
        self._settings += 1
        self._timers[key] = self._settings
        self._wake(self.life, key, self._settings, at)

    def _wake(self, life: int, key: str, setting: int, at: Nanoseconds) -> None:
        """A clock that goes slower than it did isn't there yet."""
        due = self.world.now + at - self.now()
        self.world.late(due, partial(self._fire, life, key, setting, at))

    def _fire(self, life: int, key: str, setting: int, at: Nanoseconds) -> None:
        if life != self.life or self._timers.get(key) != setting:
            return
        if self.now() < at:
            self._wake(life, key, setting, at)
            return
        del self._timers[key]
        self.deliver(life, TimerFired(key))

    def _disk_delay(self) -> Nanoseconds:
        return self.world.between(self.sync_delay // 4, self.sync_delay)

    def _persist(self, life: int, group: Persist) -> None:
        if life != self.life:
            return
        assert self.journal is not None
        try:
            last = self.journal.append(group.entries)
        except PowerCut:
            self.on_death()
        except (StorageFull, StorageFailed) as error:
            self._report(life, PersistFailed(error))
        else:
            self._report(life, Persisted(last))

    def _save(self, life: int, snapshot: SaveSnapshot) -> None:
        if life != self.life:
            return
        assert self.journal is not None
        try:
            self.journal.save_snapshot(snapshot.index, snapshot.image)
        except PowerCut:
            self.on_death()
        except (StorageFull, StorageFailed):
            self.world.after(RETRY, partial(self._save, life, snapshot))
        else:
            self._report(life, SnapshotSaved(snapshot.index))

    def _read(self, life: int, asked: ReadEntries) -> None:
        if life != self.life:
            return
        journal = cast("RecordJournal", self.journal)
        try:
            entries = journal.read(asked.first, asked.upto)
        except PowerCut:
            self.on_death()
        except AnabranchError as error:
            self._report(life, ReadFailed(asked.token, error))
        else:
            self._report(life, EntriesRead(asked.token, entries))

    def _put(self, life: int, object: ObjectId, outcome: AnabranchError | bytes | None) -> None:
        failed = isinstance(outcome, AnabranchError)
        self._report(life, PutFailed(object, outcome) if failed else ObjectPut(object))

    def _got(self, life: int, token: int, outcome: AnabranchError | bytes | None) -> None:
        if isinstance(outcome, AnabranchError):
            self._report(life, GetFailed(token, outcome))
        else:
            assert outcome is not None
            self._report(life, ObjectRead(token, outcome))

    def _delete(self, life: int, objects: Sequence[ObjectId]) -> None:
        def told(outcome: AnabranchError | bytes | None) -> None:
            if outcome is None:
                self._report(life, ObjectsDeleted(objects))
            elif life == self.life:
                self.world.after(RETRY, partial(self._delete, life, objects))

        if life == self.life:
            self.around.store.delete([self._name(object) for object in objects], told)

    def _quarantine(self, life: int, objects: Sequence[ObjectId]) -> None:
        def told(outcome: AnabranchError | bytes | None) -> None:
            if outcome is None:
                self._report(life, ObjectsQuarantined(objects))
            elif life == self.life:
                self.world.after(RETRY, partial(self._quarantine, life, objects))

        if life == self.life:
            names = [self._name(object) for object in objects]
            self.around.store.quarantine_orphans(names, told)

    def _return(self, life: int, objects: Sequence[ObjectId]) -> None:
        def told(outcome: AnabranchError | bytes | None) -> None:
            if outcome is None:
                self._report(life, ObjectsReturned(objects))
            elif life == self.life:
                self.world.after(RETRY, partial(self._return, life, objects))

        if life == self.life:
            self.around.store.return_objects([self._name(each) for each in objects], told)

    def _purge(self, life: int, objects: Sequence[ObjectId]) -> None:
        def told(outcome: AnabranchError | bytes | None) -> None:
            if outcome is None:
                self._report(life, QuarantinePurged())
            elif life == self.life:
                self.world.after(RETRY, partial(self._purge, life, objects))

        if life == self.life:
            self.around.store.purge([self._name(each) for each in objects], told)

    def _quarantine_listed(self, life: int, found: dict[str, Nanoseconds]) -> None:
        dated = [
            (ObjectName.parse(unquarantined(name)).id, (EPOCH + since) // MS)
            for name, since in found.items()
        ]
        self._report(life, QuarantineListed(dated))

    def _listed(self, life: int, names: list[str]) -> None:
        self._report(life, ObjectsListed([ObjectName.parse(name).id for name in names]))

    def _report(self, life: int, event: Event) -> None:
        """In an event of its own: a machine is never stepped from within a step."""
        self.world.at(self.world.now, partial(self.deliver, life, event))

    def _name(self, object: ObjectId) -> str:
        return str(ObjectName.of(self.around.cluster, object))

    def seat(self, caller: Caller) -> "Seat":
        assert self.alive
        self._seats += 1
        self._callers[self._seats] = caller
        return Seat(self, self._seats)

    def vacate(self, number: int) -> None:
        self._callers.pop(number, None)


class Seat:
    """A caller's place at one life of a node. Its number and a request's make the token."""

    def __init__(self, node: Node, number: int) -> None:
        self._node = node
        self._life = node.life
        self._base = number << _REQUEST_BITS

    def ask(self, request: int, message: Any) -> None:
        match message:
            case Credit(subscription):
                message = replace(message, subscription=self._base | subscription)
            case Cancel(asked):
                message = replace(message, request=self._base | asked)
            case _:
                pass
        self._node.deliver(self._life, Request(self._base | request, message))

    def leave(self, requests: Sequence[int]) -> None:
        if requests:
            gone = Gone([self._base | request for request in requests])
            self._node.deliver(self._life, gone)
        self._node.vacate(self._base >> _REQUEST_BITS)
