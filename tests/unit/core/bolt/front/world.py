"""One log, its lazy front, clients, forks and faults, drawn from a seed.

The front's sequencers and controller are the real machines, and the log is the real state machine.
What lies between them, a broker and an object store, is a delay: questions and answers are late,
repeated, lost, or refused while the store is away.
"""

import heapq
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from typing import Any

from anabranch.core.bolt.front.config import FrontControllerConfig, FrontSequencerConfig
from anabranch.core.bolt.front.controller import FrontController
from anabranch.core.bolt.front.questions import LOG, AskLog, LogAnswered
from anabranch.core.bolt.front.sequencer import FrontSequencer
from anabranch.core.bolt.logs.front import Front
from anabranch.core.bolt.protocol.commands import (
    FORMAT,
    Batch,
    Command,
    CommitObject,
    Committed,
    CreateLog,
    Description,
    EngineSettings,
    Entry,
    ForkLog,
    Promote,
    RaiseFormat,
    Receipt,
    RegisterBroker,
    Row,
    Squash,
)
from anabranch.core.bolt.protocol.fronts import (
    AppendFront,
    ConfigureFront,
    FindReceipt,
    FrontConfiguration,
    ReadFront,
)
from anabranch.core.bolt.protocol.messages import Appended
from anabranch.core.bolt.protocol.queries import ResolveReceipt, Settled
from anabranch.core.bolt.state import snapshot
from anabranch.core.bolt.state.invariants import broken, held
from anabranch.core.bolt.state.state import State
from anabranch.core.errors import Unavailable
from anabranch.core.errors.refused import Refused
from anabranch.core.limits import Limits
from anabranch.core.machine import (
    Effects,
    Event,
    Persist,
    Persisted,
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
from anabranch.core.records.batch import peek
from anabranch.core.records.objects import object_id
from anabranch.core.records.record import Record, encode
from anabranch.core.sequencing.protocol.ids import AppendId
from anabranch.core.sequencing.protocol.messages import Append, Taken
from anabranch.core.types import MS, Kind, LogId, Nanoseconds

BROKERS = ("broker-0", "broker-1")
CONTROLLER = "controller"
SECOND: Nanoseconds = 1_000 * MS
Machine = FrontSequencer | FrontController


@dataclass
class Node:
    """A process: its machine while it runs, and its journal."""

    name: str
    make: Callable[[], Machine]
    fsync: bool
    machine: Machine | None = None
    life: int = 0
    entries: list[bytes] = field(default_factory=list[bytes])
    saved: tuple[int, bytes] = (0, b"")
    timer: Nanoseconds = -1


@dataclass
class Sent:
    """An append, as its client knows it."""

    id: AppendId
    batch: bytes
    before: frozenset[AppendId]
    """What was acknowledged before it was sent."""
    views: set[int] = field(default_factory=set[int])
    takers: dict[int, set[str]] = field(default_factory=dict[int, set[str]])
    acknowledged: bool = False
    given_up: bool = False


class World:
    def __init__(self, seed: int, *, fsync: bool, sequencers: int = 2) -> None:
        self.chance = random.Random(seed)
        self.limits = Limits(ring_bytes_max=8_192 if seed % 3 == 0 else 1 << 20)
        self.fsync = fsync
        self.now: Nanoseconds = SECOND
        self.events: list[tuple[Nanoseconds, int, Callable[[], None]]] = []
        self.serial = count()
        self.tokens = count(1)
        self.state = State("c", self.limits)
        self.objects = count()
        self.away_until: Nanoseconds = 0
        """The store and the metadata answer nothing until then."""
        self.calm = False
        """No faults."""
        self.deaf = False
        """What the log answers is lost."""
        self.refused: list[str] = []
        """Codes of what clients were refused with."""
        self.sent: dict[AppendId, Sent] = {}
        self.asked: dict[tuple[str, int], tuple[AppendId, int]] = {}
        self.lost_view = 0
        self.members_of: dict[int, set[str]] = {}
        """By view, as far as it was looked at."""
        self.parked = 0
        """Batches that were committed while a promotable fork was undecided."""
        self.in_log: list[AppendId] = []
        """As the log has committed them."""
        self.apply(RaiseFormat(FORMAT))
        for broker in BROKERS:
            self.apply(RegisterBroker(broker))
        front = EngineSettings(
            sequencers=sequencers, durability="fsync" if fsync else "memory", embedded=True
        )
        made = self.apply(CreateLog("orders", front=front))
        assert isinstance(made, Description)
        self.log: LogId = made.id
        names = tuple(f"s{n}" for n in range(sequencers))
        self.nodes = {name: Node(name, partial(self._sequencer, name), fsync) for name in names}
        controller = FrontControllerConfig(
            node=CONTROLLER, log=self.log, sequencers=names, accept_loss=not fsync
        )
        self.nodes[CONTROLLER] = Node(
            CONTROLLER, lambda: FrontController(controller, self.limits), fsync=False
        )
        self.names = names
        for node in self.nodes.values():
            self.start(node)

    def _sequencer(self, name: str) -> FrontSequencer:
        config = FrontSequencerConfig(
            node=name, log=self.log, controllers=(CONTROLLER,), fsync=self.fsync
        )
        return FrontSequencer(config, self.limits)

    # Time.

    def after(self, delay: Nanoseconds, action: Callable[[], None]) -> None:
        heapq.heappush(self.events, (self.now + delay, next(self.serial), action))

    def run(self, span: Nanoseconds) -> None:
        end = self.now + span
        while self.events and self.events[0][0] <= end:
            self.now, _, action = heapq.heappop(self.events)
            action()
        self.now = end

    def delay(self) -> Nanoseconds:
        draw = self.chance.random()
        return int((200 if draw < 0.02 and not self.calm else 2) * MS * (0.2 + draw))

    # Processes.

    def start(self, node: Node) -> None:
        assert node.machine is None
        node.life += 1
        node.timer = -1
        machine = node.machine = node.make()
        if isinstance(machine, FrontSequencer):
            index, image = node.saved
            machine.recover(image if index else None)
            for at, entry in enumerate(node.entries[index:], index + 1):
                machine.replayed(at, entry)
        self.perform(node, machine.start(self.now))

    def crash(self, node: Node) -> None:
        node.machine = None
        if not node.fsync:
            node.entries, node.saved = [], (0, b"")

    def give(self, node: Node, life: int, event: Event) -> None:
        if node.machine is not None and node.life == life:
            self.perform(node, node.machine.step(self.now, event))

    def perform(self, node: Node, effects: Effects) -> None:
        for effect in effects:
            match effect:
                case Send(to, message):
                    self.send(node, to, message)
                case SetTimer(key, at):
                    node.timer = at
                    wait = max(0, at - self.now)
                    self.after(wait, partial(self._ring, node, node.life, key, at))
                case Persist(entries):
                    self.after(self.delay(), partial(self._write, node, node.life, [*entries]))
                case SaveSnapshot(index, image):
                    node.saved = index, image
                    self.after(0, partial(self.give, node, node.life, SnapshotSaved(index)))
                case Reply(token, message):
                    self._answered(node, token, message)
                case Replies(tokens, messages):
                    for token, message in zip(tokens, messages, strict=True):
                        self._answered(node, token, message)
                case _:
                    raise AssertionError(effect)

    def _ring(self, node: Node, life: int, key: str, at: Nanoseconds) -> None:
        if node.timer == at:
            self.give(node, life, TimerFired(key))

    def _write(self, node: Node, life: int, entries: list[bytes]) -> None:
        """What a crash interrupts is on the disk or isn't."""
        if node.life != life or (node.machine is None and self.chance.random() < 0.5):
            return
        node.entries += entries
        self.give(node, life, Persisted(len(node.entries)))

    def send(self, node: Node, to: str, message: Any) -> None:
        if to == LOG:
            assert isinstance(message, AskLog)
            self._ask(node, message)
            return
        copies = 1
        if not self.calm:
            draw = self.chance.random()
            copies = 0 if draw < 0.02 else 2 if draw < 0.04 else 1
        receiver = self.nodes[to]
        for _ in range(copies):
            event = Received(node.name, message)
            self.after(self.delay(), partial(self._deliver, receiver, event))

    def _deliver(self, receiver: Node, event: Event) -> None:
        """To whichever life of the node is there when it arrives."""
        self.give(receiver, receiver.life, event)

    # The log, behind brokers and a store.

    def _ask(self, node: Node, letter: AskLog) -> None:
        copies = 1
        if not self.calm:
            draw = self.chance.random()
            copies = 0 if draw < 0.02 else 2 if draw < 0.05 else 1
        for _ in range(copies):
            wait = self.delay()
            if isinstance(letter.message, AppendFront):
                wait += int(self.chance.uniform(20, 200)) * MS
            self.after(wait, partial(self._decide, node, node.life, letter))

    def _decide(self, node: Node, life: int, letter: AskLog) -> None:
        if self.now < self.away_until:
            answer: object = Refused.of(Unavailable("the object store", "it is away"))
        elif isinstance(letter.message, AppendFront):
            answer = self._commit(letter.message)
        elif isinstance(letter.message, ReadFront):
            answer = self.state.answer(letter.message)
        else:
            answer = self.apply(letter.message)
        if self.deaf:
            return
        if self.calm or self.chance.random() > 0.03:
            event = Received(LOG, LogAnswered(letter.request, answer))
            self.after(self.delay(), partial(self.give, node, life, event))

    def _commit(self, message: AppendFront) -> object:
        rows: list[Batch] = []
        for batch in message.batches:
            header = peek(batch)
            rows.append(
                Batch(
                    len(batch),
                    header.count,
                    header.producer_id,
                    header.producer_epoch,
                    header.base_sequence,
                )
            )
        number = next(self.objects)
        turn = number % len(BROKERS)
        row = Row(message.log, 0, rows, message.mark)
        outcome = self.apply(CommitObject(BROKERS[turn], object_id(turn + 1, number), [row]))
        assert isinstance(outcome, Committed)
        assert held(self.state.replica, [row.log], outcome) == [], "a position is told too early"
        (result,) = outcome.rows
        if isinstance(result, Refused):
            return result
        self.in_log += [AppendId(row.producer, row.epoch, row.sequence) for row in rows]
        if isinstance(result, Receipt):
            self.parked += 1
            return Appended(None, result)
        assert isinstance(result, int)
        return Appended(result)

    def apply(self, command: Command) -> object:
        outcome = self.state.apply(Entry(self.now // MS, b"", command))
        faults = broken(self.state.replica)
        assert not faults, faults
        if isinstance(command, ConfigureFront) and isinstance(outcome, FrontConfiguration):
            self._check_losses(outcome)
        return outcome

    def _check_losses(self, configuration: FrontConfiguration) -> None:
        """A view is given up only if no member of it is left."""
        lost = {view for view, _ in configuration.lost_views}
        for node in self.nodes.values():
            machine = node.machine
            view = machine.replica.view if isinstance(machine, FrontSequencer) else None
            if view is not None and view == configuration.view:
                assert view.number not in lost, "a member of a lost view is left"

    # Clients.

    def append(self, producer: int) -> None:
        """A producer's next append, unless its last one is still on its way."""
        mine = [each for each in self.sent.values() if each.id.producer == producer]
        if mine and not (mine[-1].acknowledged or mine[-1].given_up):
            self.try_again(mine[-1])
            return
        epoch = sum(each.given_up for each in mine)
        sequence = sum(each.id.epoch == epoch for each in mine)
        id = AppendId(producer, epoch, sequence)
        batch = encode(
            [Record(b"%d-%d" % (producer, len(mine)))],
            producer_id=producer,
            producer_epoch=epoch,
            base_sequence=sequence,
            now=0,
        )
        before = frozenset(each.id for each in self.sent.values() if each.acknowledged)
        self.sent[id] = Sent(id, batch, before)
        self.try_again(self.sent[id])

    def send_append(self, producer: int) -> None:
        """To every sequencer, in its own view: whatever the log says."""
        batch = encode(
            [Record(b"x")], producer_id=producer, producer_epoch=0, base_sequence=0, now=0
        )
        for name in self.names:
            node = self.nodes[name]
            machine = node.machine
            if isinstance(machine, FrontSequencer) and machine.replica.view is not None:
                event = Request(next(self.tokens), Append(machine.replica.view.number, 0, batch))
                self.after(self.delay(), partial(self.give, node, node.life, event))

    def try_again(self, sent: Sent) -> None:
        view = self.front.configuration.view
        if view is None or sent.given_up:
            return
        self.members_of[view.number] = set(view.nodes)
        sent.views.add(view.number)
        for name in view.nodes:
            node = self.nodes[name]
            token = next(self.tokens)
            self.asked[name, token] = sent.id, view.number
            event = Request(token, Append(view.number, sent.id.sequence, sent.batch))
            self.after(self.delay(), partial(self.give, node, node.life, event))

    def _answered(self, node: Node, token: int, message: object) -> None:
        asked = self.asked.pop((node.name, token), None)
        if isinstance(message, Refused):
            self.refused.append(message.code)
        if asked is None or not isinstance(message, Taken):
            return
        id, view = asked
        takers = self.sent[id].takers.setdefault(view, set())
        takers.add(node.name)
        if takers >= self.members_of[view]:
            self.sent[id].acknowledged = True

    @property
    def front(self) -> Front:
        front = self.state.replica.forest.logs[self.log].front
        assert front is not None
        return front

    def note_losses(self) -> None:
        """What was sent in a view that was lost is unknown for good, unless it was proved."""
        lost = max((view for view, _ in self.front.configuration.lost_views), default=0)
        if lost > self.lost_view:
            self.lost_view = lost
            for each in self.sent.values():
                if each.id not in self.in_log and each.views and min(each.views) <= lost:
                    each.given_up = True

    # Forks and faults.

    def fork(self) -> None:
        undecided = self.state.replica.forest.logs[self.log].promotable_forks
        if undecided:
            fork = undecided[0][1]
            self.apply(Promote(fork) if self.chance.random() < 0.5 else Squash(fork))
            return
        made = self.apply(ForkLog(self.log, Kind.CONTINUOUS, promotable=True))
        assert isinstance(made, Description)
        number = next(self.objects)
        turn = number % len(BROKERS)
        row = Row(made.id, 0, [Batch(10, 2)])
        self.apply(CommitObject(BROKERS[turn], object_id(turn + 1, number), [row]))

    def decide_forks(self) -> None:
        while undecided := self.state.replica.forest.logs[self.log].promotable_forks:
            self.apply(Promote(undecided[0][1]))

    def fault(self) -> None:
        draw = self.chance.random()
        if draw < 0.25:
            self.away_until = self.now + int(self.chance.uniform(1, 20) * SECOND)
        elif draw < 0.35:
            for name in self.names:
                if self.nodes[name].machine is not None:
                    self.crash(self.nodes[name])
        else:
            node = self.nodes[self.chance.choice((*self.names, CONTROLLER))]
            if node.machine is None:
                self.start(node)
            else:
                self.crash(node)
        if self.chance.random() < 0.3:
            self.state.replica = snapshot.load(snapshot.save(self.state.replica), self.limits)

    def heal(self) -> None:
        self.calm, self.deaf, self.away_until = True, False, 0
        for node in self.nodes.values():
            if node.machine is None:
                self.start(node)

    # What must hold.

    def check(self) -> None:
        assert len(set(self.in_log)) == len(self.in_log), "an append is in the log once"
        at = {id: turn for turn, id in enumerate(self.in_log)}
        for id, turn in at.items():
            for earlier in self.sent[id].before:
                if earlier in at:
                    assert at[earlier] < turn, f"{earlier} was acknowledged before {id} was sent"

    @property
    def owed(self) -> list[AppendId]:
        """Acknowledged, not in the log, and not given up as lost."""
        return [
            each.id
            for each in self.sent.values()
            if each.acknowledged and each.id not in self.in_log and not each.given_up
        ]

    def check_end(self) -> None:
        """All that was acknowledged is in the log, and found by its offset."""
        self.check()
        assert not self.owed, self.owed
        for offset in range(len(self.in_log)):
            receipt = self.state.answer(FindReceipt(self.log, offset))
            assert isinstance(receipt, Receipt), receipt
            assert isinstance(self.state.answer(ResolveReceipt(receipt)), Settled)
