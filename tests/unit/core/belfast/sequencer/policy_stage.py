"""A leader's office by itself: it is handed letters, and what it decides is committed at once."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from anabranch.core.belfast.ledger.decisions import AnyDecision
from anabranch.core.belfast.ledger.ledger import Ledger, Member
from anabranch.core.belfast.ledger.rules import Rules
from anabranch.core.belfast.ledger.windows import Window
from anabranch.core.belfast.protocol.letters import Alive, Report
from anabranch.core.belfast.sequencer.policy import Office
from anabranch.core.lateness import Delays
from anabranch.core.types import MS, Nanoseconds

RULES = Rules(
    t_ord_us=1_000,
    window=10,
    ahead_rounds=3,
    silent_intervals=20,
    fail_intervals=50,
    adaptive=False,
)


@dataclass
class Faked:
    """A shard that says what a test wants it to say, and is right about its own log."""

    name: str
    replicas: tuple[str, ...]
    demand: int = 0
    window: int = 0
    rounds: int = 0
    records: int = 0
    queued: int = 0
    signal: int = 0
    durable: int | None = None
    disks: dict[str, int] = field(default_factory=dict[str, int])
    """Of those replicas that have another than the one they had first."""


@dataclass
class Stage:
    rules: Rules = RULES
    now: Nanoseconds = 1_000_000_000_000
    ledger: Ledger = field(default_factory=Ledger)
    decided: list[AnyDecision] = field(default_factory=list[AnyDecision])
    sent: list[tuple[str, Any]] = field(default_factory=list[tuple[str, Any]])
    shards: dict[str, Faked] = field(default_factory=dict[str, Faked])
    term: int = 1
    delays: Delays = field(default_factory=Delays)
    """Of the timers of the sequencer whose office this is."""

    def __post_init__(self) -> None:
        self.elect()

    @staticmethod
    def seated(*names: str, copies: int = 2, demand: int = 0, **rules: Any) -> "Stage":
        """These shards, and a first window with seats for all of them."""
        stage = Stage(msgspec.structs.replace(RULES, shards_min=len(names), **rules))
        stage.join(*names, copies=copies, demand=demand)
        return stage

    def elect(self) -> None:
        """Another leader: it knows the ledger and nothing else."""
        self.office = Office(
            ledger=self.ledger,
            rules=self.rules,
            term=self.term,
            now=self.now,
            send=self._send,
            delays=self.delays,
        )

    def _send(self, node: str, letter: Any) -> None:
        self.sent.append((node, letter))

    def settle(self, room: bool = True) -> list[AnyDecision]:
        decisions = self.office.settle(self.now, room)
        self.ledger.apply(decisions)
        self.decided += decisions
        return decisions

    def join(self, *names: str, copies: int = 2, demand: int = 0) -> None:
        for name in names:
            replicas = tuple(f"{name}{copy}" for copy in range(copies))
            self.shards[name] = Faked(name, replicas, demand)
        for name in names:
            self.alive(name)

    def alive(self, name: str, *nodes: str, **fields: Any) -> list[AnyDecision]:
        """From these replicas, or all."""
        shard, member = self.shards[name], self.ledger.member(name)
        for node in nodes or shard.replicas:
            letter = Alive(
                name,
                shard.replicas,
                shard.demand,
                fields.get("epoch", 0),
                0,
                fields.get("view", self.ledger.view),
                fields.get("standing", -1),
                shard.disks.get(node, 0),
                placed=fields.get("placed", 0 if member is None else member.placed),
            )
            self.office.received(self.now, node, letter)
        return self.settle()

    def member(self, name: str) -> Member:
        member = self.ledger.member(name)
        assert member is not None
        return member

    def report(
        self, name: str, window: int, rounds: int, *, room: bool = True, **fields: Any
    ) -> list[AnyDecision]:
        """The shard's rounds so far, and all that is durable with them."""
        shard, member = self.shards[name], self.member(name)
        shard.window, shard.rounds = window, rounds
        for key in ("records", "queued", "signal"):
            setattr(shard, key, fields.get(key, getattr(shard, key)))
        letter = Report(
            member.id,
            fields.get("epoch", member.epoch),
            fields.get("view", self.ledger.view),
            window,
            rounds,
            fields.get("durable", self.durable(name)),
            shard.records,
            shard.queued,
            shard.signal,
            0,
            fields.get("silent", ()),
            fields.get("caught_up", ()),
            delay_us=fields.get("delay_us", 0),
        )
        self.office.received(self.now, fields.get("sender", member.primary), letter)
        return self.settle(room)

    def durable(self, name: str) -> int:
        """What the shard's rounds hold."""
        shard, member = self.shards[name], self.member(name)
        if shard.durable is not None:
            return shard.durable
        window = self.ledger.window(shard.window)
        seat = window.by_shard.get(member.id) if window is not None else None
        return member.placed if seat is None else seat.base + shard.rounds * seat.quota

    def after(self, ms: float) -> None:
        self.now += int(ms * MS)

    def pass_time(self, ms: int, *present: str) -> list[AnyDecision]:
        """While replicas of these shards, or these nodes, say that they are alive."""
        before = len(self.decided)
        for _ in range(ms):
            self.after(1)
            for name in present:
                if name in self.shards:
                    self.alive(name)
                else:
                    self.alive(name[:-1], name)
            self.settle()
        return self.decided[before:]

    def of(self, kind: type[Any]) -> list[Any]:
        """Decisions of this kind."""
        return [each for each in self.decided if isinstance(each, kind)]

    def letters(self, kind: type[Any]) -> list[tuple[str, Any]]:
        return [(node, letter) for node, letter in self.sent if isinstance(letter, kind)]

    @property
    def windows(self) -> list[Window]:
        return self.ledger.windows


def quotas(window: Window) -> Sequence[tuple[int, int]]:
    return [(seat.shard, seat.quota) for seat in window.seats]
