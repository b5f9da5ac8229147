"""Sequencers with disks, and shards as simple as can be. The test is controller and client."""

from itertools import count

from tests.unit.core.erwin.orderer.naive_shard import NaiveShard
from tests.unit.core.sequencing.group import batch_of

from anabranch.core.erwin.orderer.config import SequencerConfig
from anabranch.core.erwin.orderer.row_groups import PushBounds
from anabranch.core.erwin.orderer.sequencer import Sequencer
from anabranch.core.erwin.protocol.letters import Configuration, Push
from anabranch.core.erwin.protocol.rows import Mode
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
    Rest,
    Send,
    SetTimer,
    TimerFired,
)
from anabranch.core.sequencing.protocol.ids import AppendId, Member
from anabranch.core.sequencing.protocol.letters import Prepare, Prepared, Seal, Start
from anabranch.core.sequencing.protocol.messages import Append, AppendMeta
from anabranch.core.sequencing.view import Ballot, View
from anabranch.core.types import MS

CONTROLLER = "controller"
LIMITS = Limits()


class Machine:
    """One sequencer and its disk."""

    def __init__(self, config: SequencerConfig, limits: Limits) -> None:
        self.config = config
        self.limits = limits
        self.entries: list[bytes] = []
        self.start()

    def start(self) -> None:
        self.sequencer = Sequencer(self.config, self.limits)
        for index, entry in enumerate(self.entries, 1):
            self.sequencer.replayed(index, entry)
        self.writing: list[bytes] | None = None
        self.timer: int | None = None
        self.rested = False
        self.up = True


class Cluster:
    def __init__(
        self,
        *names: str,
        shards: int = 2,
        mode: Mode = Mode.M,
        fsync: bool = True,
        limits: Limits = LIMITS,
        hands_over: bool = False,
    ) -> None:
        self.mode = mode
        self.fsync = fsync
        self.now = MS
        self.version = 0
        self.view: View | None = None
        self.shards = [NaiveShard(number) for number in range(shards)]
        self.away: set[str] = set()
        """Primaries that nothing reaches."""
        self.letters: list[tuple[str, Send]] = []
        self.said: list[object] = []
        """To the controllers."""
        self.answers: dict[int, object] = {}
        self.tokens = count(1)
        self.machines: dict[str, Machine] = {}
        for name in names:
            config = SequencerConfig(
                node=name,
                controllers=(CONTROLLER,),
                mode=mode,
                fsync=fsync,
                hands_over=hands_over,
                bounds=PushBounds(group_rows=4),
            )
            self.machines[name] = machine = Machine(config, limits)
            self.take(machine, machine.sequencer.start(self.now))

    def __getitem__(self, name: str) -> Sequencer:
        return self.machines[name].sequencer

    def step(self, name: str, event: Event) -> None:
        machine = self.machines[name]
        if machine.up:
            self.take(machine, machine.sequencer.step(self.now, event))

    def take(self, machine: Machine, effects: Effects) -> None:
        for effect in effects:
            match effect:
                case Send():
                    self.letters.append((machine.config.node, effect))
                case Reply(token, message):
                    self._answer(token, message)
                case Replies(tokens, messages):
                    for token, message in zip(tokens, messages, strict=True):
                        self._answer(token, message)
                case Persist(entries):
                    assert machine.writing is None
                    machine.writing = list(entries)
                case SetTimer(_, at):
                    machine.timer = at
                case Rest():
                    assert not machine.rested
                    machine.rested = True
                case _:
                    raise AssertionError(effect)

    def _answer(self, token: int, message: object) -> None:
        assert token not in self.answers
        self.answers[token] = message

    def run(self) -> None:
        """Write, deliver and ring until nothing is left to do now."""
        while self._ring() or self.letters or self._writes():
            for name, machine in self.machines.items():
                if machine.writing is not None:
                    machine.entries += machine.writing
                    machine.writing = None
                    self.step(name, Persisted(len(machine.entries)))
            letters, self.letters = self.letters, []
            for sender, send in letters:
                self._deliver(sender, send)

    def _writes(self) -> bool:
        return any(each.writing is not None for each in self.machines.values())

    def _ring(self) -> bool:
        """Whether a timer was due."""
        due = [
            name
            for name, machine in self.machines.items()
            if machine.timer is not None and machine.timer <= self.now
        ]
        for name in due:
            self.machines[name].timer = None
            self.step(name, TimerFired("alarms"))
        return bool(due)

    def _deliver(self, sender: str, send: Send) -> None:
        if send.to == CONTROLLER:
            self.said.append(send.message)
        elif send.to in self.machines:
            self.step(send.to, Received(sender, send.message))
        elif send.to not in self.away:
            assert isinstance(send.message, Push)
            for shard in self.shards:
                if shard.primary == send.to:
                    answers = (shard.push(send.message), shard.sync())
                    for answer in answers:
                        self.step(sender, Received(send.to, answer))

    def wait(self, ms: int, *, step_ms: int = 100) -> None:
        for _ in range(ms // step_ms):
            self.now += step_ms * MS
            self.run()

    def change(self, number: int, *names: str, source: str = "") -> View:
        """A whole view change to these nodes, of which the first will lead."""
        ballot = Ballot(number, 1)
        if source:
            self._tell(Seal(ballot, number - 1), source)
        self.said.clear()
        self._tell(Prepare(ballot=ballot, source=source), *names)
        prepared = {each.node: each for each in self.said if isinstance(each, Prepared)}
        self.view = View(
            ballot=ballot,
            members=tuple(Member(name, prepared[name].life) for name in names),
            leader=names[0],
            base=prepared[names[0]].base,
        )
        self._tell(Start(self.view), *names)
        self.configure()
        return self.view

    def configure(self) -> None:
        self.version += 1
        configuration = Configuration(
            version=self.version,
            term=1,
            mode=self.mode,
            fsync=self.fsync,
            view=self.view,
            shards=tuple(shard.setup for shard in self.shards),
            sequencers=tuple(self.machines),
        )
        self._tell(configuration, *self.machines)

    def _tell(self, letter: object, *names: str) -> None:
        for name in names:
            self.step(name, Received(CONTROLLER, letter))
        self.run()

    def restart(self, name: str) -> None:
        machine = self.machines[name]
        machine.start()
        self.now += MS
        self.take(machine, machine.sequencer.start(self.now))
        self.run()

    def append(self, sequence: int, *, shard: str = "", run: bool = True) -> list[int]:
        """To all members; the tokens."""
        assert self.view is not None
        id = AppendId(7, 0, sequence)
        batch = batch_of(id, size=10)
        message = (
            AppendMeta(self.view.number, 0, id, 1, len(batch), shard)
            if shard
            else Append(self.view.number, 0, batch)
        )
        tokens = [self.ask(name, message, run=False) for name in self.view.nodes]
        if run:
            self.run()
        return tokens

    def ask(self, name: str, message: object, *, run: bool = True) -> int:
        token = next(self.tokens)
        self.step(name, Request(token, message))
        if run:
            self.run()
        return token
