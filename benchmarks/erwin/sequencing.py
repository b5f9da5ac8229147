"""Figure 13: how many appends the sequencing layer takes, where only their ids go through it
(mode st). The leader's machine and all its frames are the real ones, and have one core; the other
members are machines beside it that aren't timed, and shards hold at once what they are pushed.
"""

from collections import deque
from dataclasses import dataclass
from typing import Any

from anabranch.core.alarms import Alarms
from anabranch.core.erwin.orderer.config import SequencerConfig
from anabranch.core.erwin.orderer.sequencer import Sequencer
from anabranch.core.erwin.protocol import codec as erwin
from anabranch.core.erwin.protocol.letters import Configuration, Push, Pushed, ShardSetup
from anabranch.core.erwin.protocol.rows import Mode
from anabranch.core.limits import Limits
from anabranch.core.machine import (
    Effects,
    Event,
    Received,
    Replies,
    Reply,
    Requests,
    Send,
    TimerFired,
)
from anabranch.core.sequencing.protocol import codec as sequencing
from anabranch.core.sequencing.protocol.ids import AppendId, Member
from anabranch.core.sequencing.protocol.letters import Prepare, Present, Start
from anabranch.core.sequencing.protocol.messages import AppendMeta
from anabranch.core.sequencing.view import Ballot, View
from anabranch.core.wire.peers import encode_letter
from benchmarks.report import Chart, Found, Line, row
from benchmarks.size import Size
from benchmarks.timing import busy

LEADER, FOLLOWERS, CONTROLLER, SHARD = "q0", ("q1", "q2"), "c", "s"
VIEW = 1
PRODUCERS = 16
"""Clients."""
APPENDS = 20_000
ROUNDS = 5
BAR = 100_000.0
MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class _Case:
    what: str
    together: int
    """Appends that reach the leader in one turn."""
    records: int
    """Of each append."""
    bar: float | None = None


CASES = (
    _Case("one append of one record in a turn", 1, 1),
    _Case("256 appends of one record in a turn", 256, 1, BAR),
    _Case("256 appends of 16 records in a turn", 256, 16),
)


class _Layer:
    """A view of three members."""

    def __init__(self) -> None:
        self._limits = Limits()
        self._nodes = {name: self._sequencer(name) for name in (LEADER, *FOLLOWERS)}
        self._letters: deque[tuple[str, str, Any]] = deque()
        self._requests = sequencing.CODEC.requests(MIB)
        self._reader = erwin.letters(MIB)
        self.leader_ns = 0
        """That the leader was busy."""
        self.answered = 0
        self._lives: dict[str, int] = {}
        self._begin()

    @property
    def stable(self) -> int:
        return self._nodes[LEADER].replica.stable

    def append(self, frames: bytes) -> None:
        """To all members; returns when all that follows from it is done."""
        for name in FOLLOWERS:
            messages = [message for _, message in sequencing.CODEC.requests(MIB).feed(frames)]
            self._step(name, Requests(range(len(messages)), messages))
        began = busy()
        messages = [message for _, message in self._requests.feed(frames)]
        self._lead(began, Requests(range(len(messages)), messages))
        # Clients were answered: at the end of the driver's turn the leader orders.
        self._lead(busy(), TimerFired(Alarms.KEY))
        self._settle()

    def _sequencer(self, name: str) -> Sequencer:
        config = SequencerConfig(node=name, controllers=(CONTROLLER,), mode=Mode.ST, fsync=False)
        return Sequencer(config, self._limits)

    def _begin(self) -> None:
        for name, node in self._nodes.items():
            self._perform(name, node.start(0))
        ballot = Ballot(VIEW, 1)
        members = tuple(Member(name, self._lives[name]) for name in self._nodes)
        view = View(ballot=ballot, members=members, leader=LEADER)
        shard = ShardSetup(
            number=0, name=SHARD, nodes=(SHARD,), epoch=1, primary=SHARD, replicas=(SHARD,)
        )
        configuration = Configuration(
            version=1,
            term=1,
            mode=Mode.ST,
            fsync=False,
            view=view,
            shards=(shard,),
            sequencers=tuple(self._nodes),
        )
        for letter in (Prepare(ballot=ballot, source=""), Start(view), configuration):
            for name in self._nodes:
                self._step(name, Received(CONTROLLER, letter))
            self._settle()

    def _step(self, name: str, event: Event) -> None:
        self._perform(name, self._nodes[name].step(busy(), event))

    def _perform(self, name: str, effects: Effects) -> None:
        for effect in effects:
            match effect:
                case Send(to, Present() as message) if to == CONTROLLER:
                    self._lives[name] = message.life
                case Send(to, message):
                    self._letters.append((name, to, message))
                case Replies(tokens) if name == LEADER:
                    self.answered += len(tokens)
                case Reply() if name == LEADER:
                    self.answered += 1
                case _:
                    """Timers: nothing is lost here."""

    def _settle(self) -> None:
        while self._letters:
            sender, to, letter = self._letters.popleft()
            if to == LEADER:
                self._hear(sender, letter)
            elif to in self._nodes:
                self._step(to, Received(sender, letter))
            elif isinstance(letter, Push):
                self._letters.append((SHARD, sender, _held(letter)))

    def _hear(self, sender: str, letter: Any) -> None:
        frame = b"".join(encode_letter(letter))
        began = busy()
        ((_, decoded),) = self._reader.feed(frame)
        self._lead(began, Received(sender, decoded))

    def _lead(self, began: int, event: Event) -> None:
        """One step of the leader, whose frames were read from `began` on."""
        sent = _encoded(self._nodes[LEADER].step(busy(), event))
        self.leader_ns += busy() - began
        self._perform(LEADER, sent)


def run(size: Size) -> Found:
    appends = size.of(APPENDS, 2_000)
    rows = [
        row(
            f"{case.what}: records through the leader",
            [_measured(case, appends) for _ in range(size.of(ROUNDS, 1))],
            "records/s",
            at_least=case.bar,
        )
        for case in CASES
    ]
    points = [(case.what, each.value) for case, each in zip(CASES, rows, strict=True)]
    chart = Chart(
        title="The sequencing layer on one core (figure 13)",
        x="",
        y="records/s",
        lines=[Line("leader", points)],
    )
    how = (
        f"the processor time of the leader's machine alone, with decoding and encoding of all its "
        f"frames; what sockets and the event loop take isn't in it. {PRODUCERS} clients, mode st, "
        f"durability memory, 3 members, {appends} appends a round, {ROUNDS} rounds"
    )
    paper = "the paper: 1.34 million metadata appends/s, in C++ with eRPC"
    return Found(rows, [chart], [how, paper])


def _measured(case: _Case, appends: int) -> float:
    layer = _Layer()
    turns = max(1, appends // case.together)
    frames = [_frames(case, turn) for turn in range(turns)]
    for each in frames:
        layer.append(each)
    records = turns * case.together * case.records
    assert layer.answered == turns * case.together, "every append is acknowledged"
    assert layer.stable == records, "every append is ordered, at all members"
    return records / (layer.leader_ns / 1e9)


def _frames(case: _Case, turn: int) -> bytes:
    """What clients send in one turn."""
    frames: list[bytes] = []
    for number in range(turn * case.together, (turn + 1) * case.together):
        producer, nth = number % PRODUCERS, number // PRODUCERS
        id = AppendId(producer + 1, 0, nth * case.records)
        message = AppendMeta(VIEW, id.sequence, id, case.records, 4_096, SHARD)
        frames += map(bytes, sequencing.CODEC.encode_request(number + 1, message))
    return b"".join(frames)


def _encoded(effects: Effects) -> Effects:
    """What the shell would write of it."""
    for effect in effects:
        match effect:
            case Send(_, message):
                encode_letter(message)
            case Reply(_, message):
                sequencing.CODEC.encode_reply(1, message)
            case Replies(tokens, messages):
                sequencing.CODEC.encode_replies(range(len(tokens)), messages)
            case _:
                """Timers."""
    return effects


def _held(push: Push) -> Pushed:
    """The shard holds it all."""
    upto = push.first + sum(each.count for each in push.rows)
    return Pushed(fence=push.fence, shard=0, upto=upto, trimmed=push.trimmed, stable=push.stable)
