"""Sequencing replicas whose disks write, and whose letters travel, when a test tells them to."""

from collections.abc import Callable
from itertools import count
from typing import Any

from anabranch.core.alarms import Alarms
from anabranch.core.errors import StorageFailed
from anabranch.core.errors.refused import Refused
from anabranch.core.limits import Limits
from anabranch.core.machine import Effect, Persist, Replies, Reply, SaveSnapshot, Send, SetTimer
from anabranch.core.records.record import Record, encode
from anabranch.core.sequencing.config import SequencingConfig
from anabranch.core.sequencing.protocol.ids import AppendId, Member
from anabranch.core.sequencing.protocol.letters import (
    Prepare,
    Prepared,
    Seal,
    SequencingLetter,
    Start,
)
from anabranch.core.sequencing.protocol.messages import Append
from anabranch.core.sequencing.replica import SequencingReplica
from anabranch.core.sequencing.view import Ballot, View
from anabranch.core.types import MS, Nanoseconds, Position

CONTROLLER = "controller"
LIMITS = Limits()


def id_of(sequence: int, *, producer: int = 7, epoch: int = 0) -> AppendId:
    return AppendId(producer, epoch, sequence)


def codes(answers: list[object]) -> list[str]:
    """Of the refusals among them; empty for other answers."""
    return [answer.code if isinstance(answer, Refused) else "" for answer in answers]


def batch_of(id: AppendId, *, values: int = 1, size: int = 1) -> bytes:
    records = [Record(bytes(size)) for _ in range(values)]
    return encode(
        records,
        producer_id=id.producer,
        producer_epoch=id.epoch,
        base_sequence=id.sequence,
        now=0,
    )


class Node:
    """One replica, its disk, and what its owner was told."""

    def __init__(
        self,
        config: SequencingConfig,
        post: Callable[[str, Send], None],
        answer: Callable[[str, int, object], None],
        limits: Limits = LIMITS,
    ) -> None:
        self.config = config
        self.limits = limits
        self.post = post
        self.answer = answer
        self.entries: list[bytes] = []
        """On the disk."""
        self.snapshot: tuple[int, bytes] | None = None
        self.writing: list[bytes] | None = None
        self.up = False
        self.told: list[View | None] = []
        """Views as they started; None: one ended."""
        self.stable: Position = 0
        self.timer: Nanoseconds | None = None

    @property
    def ordered(self) -> Position:
        """In memory: the journal may be behind."""
        return self.replica.tail - self.replica.ring.records

    def start(self, now: Nanoseconds) -> None:
        assert not self.up
        self.up = True
        self.writing, self.timer = None, None
        self.told = []
        effects: list[Effect] = []
        self.effects = effects
        self.alarms = Alarms(effects)
        self.alarms.now = now
        self.replica = SequencingReplica(self.config, self.limits, effects, self.alarms)
        self.replica.on_started = self.told.append
        self.replica.on_ended = lambda: self.told.append(None)
        self.replica.on_stable = self._on_stable
        saved = 0
        if self.snapshot is not None:
            saved, image = self.snapshot
            self.replica.recover(image)
        for index, entry in enumerate(self.entries[saved:], saved + 1):
            self.replica.replayed(index, entry)
        self.replica.start()
        self.settle()

    def crash(self, *, kept: bool = False) -> None:
        """What is being written is on the disk or isn't."""
        assert self.up
        self.up = False
        if kept and self.writing is not None:
            self.entries += self.writing

    def wipe(self) -> None:
        assert not self.up
        self.entries, self.snapshot = [], None

    def receive(self, sender: str, letter: SequencingLetter) -> None:
        self.replica.received(sender, letter)
        self.settle()

    def link(self, other: str) -> None:
        """There is a new connection to another replica."""
        self.replica.linked(other)
        self.settle()

    def request(self, token: int, message: object) -> bool:
        asked = self.replica.requested(token, message)
        self.settle()
        return asked

    def write(self) -> None:
        """The disk has written what it was given."""
        assert self.writing is not None
        self.entries += self.writing
        self.writing = None
        self.replica.persisted(len(self.entries))
        self.settle()

    def fail(self) -> None:
        assert self.writing is not None
        self.writing = None
        self.replica.persist_failed(StorageFailed("the disk", "a test says so"))
        self.settle()

    def wake(self, now: Nanoseconds) -> None:
        self.alarms.now = now
        if self.timer is not None and self.timer <= now:
            self.timer = None
            self.alarms.ring()
        self.settle()

    def take(self, count_max: int = 1_000) -> list[AppendId]:
        return [entry.id for entry in self.replica.take(bytes_max=1 << 20, count_max=count_max)]

    def order(self, ids: list[AppendId], *, counts: int = 1) -> None:
        first = self.ordered
        positions = [first + n * counts for n in range(len(ids))]
        self.replica.order(ids, positions, first + len(ids) * counts)
        self.settle()

    def settle(self) -> None:
        self.replica.settle()
        effects, self.effects[:] = list(self.effects), []
        for effect in effects:
            match effect:
                case Send():
                    self.post(self.config.node, effect)
                case Reply(token, message):
                    self.answer(self.config.node, token, message)
                case Replies(tokens, messages):
                    for token, message in zip(tokens, messages, strict=True):
                        self.answer(self.config.node, token, message)
                case Persist(entries):
                    assert self.writing is None, "one group at a time"
                    self.writing = list(entries)
                case SaveSnapshot(index, image):
                    assert index <= len(self.entries), "what it says is stored"
                    self.snapshot = (index, image)
                case SetTimer(_, at):
                    self.timer = at
                case _:
                    raise AssertionError(effect)

    def _on_stable(self, stable: Position) -> None:
        self.stable = max(self.stable, stable)


class Group:
    """Letters and answers of several replicas; the test is their controller and their clients."""

    def __init__(
        self,
        *names: str,
        fsync: bool = True,
        data_on_shards: bool = False,
        limits: Limits = LIMITS,
    ) -> None:
        self.letters: list[tuple[str, Send]] = []
        self.said: list[SequencingLetter] = []
        """To the controller."""
        self.answers: dict[int, tuple[str, object]] = {}
        """By token: from whom, and what."""
        self.now: Nanoseconds = MS
        self.tokens = count(1)
        self.nodes: dict[str, Node] = {}
        for name in names:
            config = SequencingConfig(
                node=name, controllers=(CONTROLLER,), fsync=fsync, data_on_shards=data_on_shards
            )
            self.nodes[name] = Node(config, self._post, self._answer, limits)
            self.nodes[name].start(self.now)

    def __getitem__(self, name: str) -> Node:
        return self.nodes[name]

    def run(self) -> None:
        """Write and deliver until nothing is left to do."""
        while True:
            busy = [node for node in self.nodes.values() if node.up and node.writing is not None]
            for node in busy:
                node.write()
            letters, self.letters = self.letters, []
            for sender, send in letters:
                self.deliver(sender, send)
            if not busy and not letters:
                return

    def deliver(self, sender: str, send: Send) -> None:
        if send.to == CONTROLLER:
            self.said.append(send.message)
        elif self.nodes[send.to].up:
            self.nodes[send.to].receive(sender, send.message)

    def wait(self, ms: int) -> None:
        self.now += ms * MS
        for node in self.nodes.values():
            if node.up:
                node.wake(self.now)

    def restart(self, name: str, *, kept: bool = False) -> None:
        self[name].crash(kept=kept)
        self.now += MS
        self[name].start(self.now)

    def letters_of(self, kind: type) -> list[Any]:
        """Those that are under way."""
        return [send.message for _, send in self.letters if isinstance(send.message, kind)]

    def lose(self, kind: type) -> None:
        self.letters = [each for each in self.letters if not isinstance(each[1].message, kind)]

    def deliver_all(self, kind: type) -> None:
        """The letters of this kind that are under way now."""
        chosen = [each for each in self.letters if isinstance(each[1].message, kind)]
        self.lose(kind)
        for sender, send in chosen:
            self.deliver(sender, send)

    def to_all(self, letter: SequencingLetter, *names: str) -> None:
        for name in names:
            self.deliver(CONTROLLER, Send(name, letter))

    def heard(self, kind: type) -> list[SequencingLetter]:
        """What the controller was told of this kind since the last look."""
        found = [letter for letter in self.said if type(letter) is kind]
        self.said = [letter for letter in self.said if type(letter) is not kind]
        return found

    def change(
        self, ballot: Ballot, *names: str, source: str = "", sealed: tuple[str, ...] = ()
    ) -> View:
        """A whole view change to these nodes, of which the first will lead."""
        view = self.prepared(ballot, *names, source=source, sealed=sealed)
        self.to_all(Start(view), *names)
        self.run()
        return view

    def start(self, view: View, *names: str) -> None:
        self.to_all(self.start_of(view), *names)

    def start_of(self, view: View) -> Start:
        return Start(view)

    def prepared(
        self, ballot: Ballot, *names: str, source: str = "", sealed: tuple[str, ...] = ()
    ) -> View:
        """The next view, before it starts."""
        if sealed:
            self.to_all(Seal(ballot, ballot.view - 1), *sealed)
            self.run()
        self.heard(Prepared)
        self.to_all(Prepare(ballot=ballot, source=source), *names)
        self.run()
        prepared = [letter for letter in self.heard(Prepared) if isinstance(letter, Prepared)]
        assert {letter.node for letter in prepared} == set(names)
        return View(
            ballot=ballot,
            members=tuple(Member(letter.node, letter.life) for letter in prepared),
            leader=names[0],
            base=prepared[0].base,
        )

    def append(
        self, view: int, id: AppendId, *names: str, lowest: int = 0, values: int = 1, size: int = 1
    ) -> list[int]:
        tokens: list[int] = []
        for name in names:
            tokens.append(next(self.tokens))
            batch = batch_of(id, values=values, size=size)
            assert self[name].request(tokens[-1], Append(view, lowest, batch))
        return tokens

    def answered(self, tokens: list[int]) -> list[object]:
        """What was answered to them, in their order; only what was."""
        return [self.answers[token][1] for token in tokens if token in self.answers]

    def _post(self, sender: str, send: Send) -> None:
        self.letters.append((sender, send))

    def _answer(self, sender: str, token: int, message: object) -> None:
        assert token not in self.answers, "a question has one answer"
        self.answers[token] = sender, message
