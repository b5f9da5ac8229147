"""A Belfast deployment as a client may meet it: a log that is known, told in every order that the
rules allow.

It holds whose each position is and what is in it. Each shard's node knows a part of what was
decided, and tells its subscribers what follows from that.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from anabranch.client.belfast.session import Effect, Event, Session
from anabranch.client.session.effects import (
    Connected,
    Dial,
    Disconnected,
    HangUp,
    Heard,
    Transmit,
)
from anabranch.client.session.settings import Settings
from anabranch.core.alarms import Alarms
from anabranch.core.belfast.ledger.ledger import Standing
from anabranch.core.belfast.ledger.windows import Run
from anabranch.core.belfast.protocol.messages import (
    Confirmed,
    Delivered,
    Directory,
    Eras,
    Failed,
    Hello,
    Locate,
    Shard,
    Subscribe,
    ToClient,
    ToServer,
    Welcome,
)
from anabranch.core.errors import ShardElsewhere
from anabranch.core.errors.refused import Refused
from anabranch.core.machine import SetTimer, TimerFired
from anabranch.core.records.record import Record, encode
from anabranch.core.types import MS
from anabranch.core.wire.session import Cancel, Credit

SEQUENCER = "q:1"
JUNK = Record(b"not meant")


def node_of(shard: str) -> str:
    return f"{shard}:1"


@dataclass(frozen=True)
class Published:
    """Everything up to here belongs to somebody."""

    horizon: int


@dataclass(frozen=True)
class Cut:
    confirmed: int


@dataclass(frozen=True)
class Returned:
    """A shard that had failed is admitted again, and may be seated."""

    shard: str


@dataclass
class Feed:
    """One subscription at a node."""

    request: int
    shard: str
    upto: int
    era: int = -1
    known: int = -1


@dataclass
class Node:
    """A shard's only replica, and what it knows of what was decided."""

    shard: str
    applied: int = 0
    horizon: int = 0
    confirmed: int = 0
    view: int = 0
    failed: list[Failed] = field(default_factory=list[Failed])
    zombie: bool = False
    """Its shard failed, and it doesn't know."""
    feeds: dict[int, Feed] = field(default_factory=dict[int, Feed])
    outbox: list[tuple[int, ToClient]] = field(default_factory=list[tuple[int, ToClient]])
    connected: bool = False
    credited: int = 0


class World:
    """And one client in it."""

    def __init__(self, shards: Sequence[str]) -> None:
        self.owner: list[str] = []
        """Of each position that is published."""
        self.content: dict[int, bytes | None] = {}
        """What was made durable; None: a no-op."""
        self.eras: list[tuple[int, tuple[str, ...]]] = []
        self.decisions: list[Published | Cut | Failed | Returned] = []
        self.confirmed = 0
        self.views: list[Failed] = []
        self.nodes = {shard: Node(shard) for shard in shards}
        self.standing = dict.fromkeys(shards, Standing.WAITING)
        self.stand_in: dict[str, str] = {}
        self.now = 0
        self.timer: int | None = None
        self._events: list[Event] = []
        self._lines: dict[str, int] = {}
        """Of each node that was dialed."""
        picks = iter(range(1, 1 << 30))
        self.session = Session("c", Settings(), lambda bits: next(picks) % (1 << bits), [SEQUENCER])
        self._perform(self.session.start(self.now))
        self._go_on()

    # What is decided.

    def publish(self, quotas: Sequence[tuple[str, int]], rounds: int) -> None:
        start = len(self.owner)
        seats = tuple(sorted(shard for shard, _ in quotas))
        if not self.eras or self.eras[-1][1] != seats:
            self.eras.append((start, seats))
        for shard, _ in quotas:
            self.standing[shard] = Standing.SEATED
        for _ in range(rounds):
            for shard, quota in sorted(quotas):
                self.owner += [shard] * quota
        self.decisions.append(Published(len(self.owner)))

    def alive(self) -> list[str]:
        return [s for s, standing in self.standing.items() if standing is not Standing.FAILED]

    def slots(self, shard: str) -> list[int]:
        return [p for p, owner in enumerate(self.owner) if owner == shard]

    def void(self, position: int) -> bool:
        """Is it a no-op by decree?"""
        owner = self.owner[position]
        return any(
            owner in each.shards and each.since <= position < each.upto for each in self.views
        )

    def fill(self, shard: str, values: Sequence[bytes | None]) -> None:
        """Make the next records durable, as far as the node knows where they go."""
        node = self.nodes[shard]
        free = [p for p in self.slots(shard) if p not in self.content and p < node.horizon]
        self.content |= dict(zip(free, values, strict=False))

    def covered(self) -> int:
        """Up to here all is durable."""
        position = self.confirmed
        while position < len(self.owner) and (position in self.content or self.void(position)):
            position += 1
        return position

    def cut(self, confirmed: int) -> None:
        if self.confirmed < confirmed <= self.covered():
            self.confirmed = confirmed
            self.decisions.append(Cut(confirmed))

    def fail(self, shard: str) -> None:
        """As a whole: its slots that aren't cut are no-ops."""
        others = [each for each in self.alive() if each != shard]
        if not others or shard not in self.alive():
            return
        failed = Failed(
            view=len(self.views) + 1, since=self.confirmed, shards=(shard,), upto=len(self.owner)
        )
        self.views.append(failed)
        self.standing[shard] = Standing.FAILED
        self.nodes[shard].zombie = True
        for other, stand_in in self.stand_in.items():
            if stand_in == shard:
                self.stand_in[other] = others[0]
        self.stand_in[shard] = others[0]
        self.decisions.append(failed)

    def restore(self, shard: str) -> None:
        """A shard that had failed is back: it has what was cut, and nothing more."""
        if self.standing[shard] is Standing.FAILED:
            self.standing[shard] = Standing.WAITING
            self.nodes[shard].zombie = False
            del self.stand_in[shard]
            self.snap(shard)
            self.decisions.append(Returned(shard))
            while self.nodes[shard].applied < len(self.decisions):
                self.apply(shard)

    def expected(self) -> list[tuple[int, bytes]]:
        """The confirmed log."""
        found: list[tuple[int, bytes]] = []
        for position in range(self.confirmed):
            value = self.content.get(position)
            if value is not None and not self.void(position):
                found.append((position, value))
        return found

    # What nodes tell.

    def apply(self, shard: str) -> None:
        """The node learns of the next decision; one whose shard failed learns no more."""
        node = self.nodes[shard]
        if node.applied == len(self.decisions):
            return
        decision = self.decisions[node.applied]
        if isinstance(decision, Failed) and shard in decision.shards and node.zombie:
            return
        node.applied += 1
        match decision:
            case Published(horizon):
                node.horizon = horizon
            case Cut(confirmed):
                node.confirmed = confirmed
                for request in node.feeds:
                    node.outbox.append((request, Confirmed(node.view, confirmed)))
            case Failed():
                node.view = decision.view
                node.failed.append(decision)
                for request in node.feeds:
                    node.outbox.append((request, decision))
            case Returned(returned):
                for request, feed in list(node.feeds.items()):
                    if feed.shard == returned != shard:
                        del node.feeds[request]
                        error = Refused.of(ShardElsewhere(node_of(shard), returned))
                        node.outbox.append((request, error))

    def push(self, shard: str) -> None:
        """Whatever the node's subscribers may be told now."""
        node = self.nodes[shard]
        for feed in list(node.feeds.values()):
            if node.horizon <= feed.upto:
                continue
            self._tell_eras(node, feed)
            if feed.shard == shard:
                self._tell_records(node, feed)
            else:
                self._delivered(node, feed, node.horizon, [])

    def _tell_eras(self, node: Node, feed: Feed) -> None:
        if node.horizon <= feed.known:
            return
        eras = [era for era in self.eras if feed.era < era[0] < node.horizon]
        if feed.era < 0:
            earlier = [era for era in eras if era[0] <= feed.upto]
            eras = eras[max(0, len(earlier) - 1) :]
        if eras:
            feed.era = eras[-1][0]
        feed.known = node.horizon
        node.outbox.append((feed.request, Eras(tuple(eras), node.horizon)))

    def _tell_records(self, node: Node, feed: Feed) -> None:
        upto = feed.upto
        runs: list[list[int]] = []
        for position in range(feed.upto, node.horizon):
            if self.owner[position] == feed.shard and not self._known_void(node, position):
                if position not in self.content:
                    break
                if self.content[position] is not None:
                    if runs and runs[-1][-1] == position - 1:
                        runs[-1].append(position)
                    else:
                        runs.append([position])
            upto = position + 1
        if upto > feed.upto:
            self._delivered(node, feed, upto, runs)

    def _known_void(self, node: Node, position: int) -> bool:
        return any(
            node.shard in each.shards and each.since <= position < each.upto for each in node.failed
        )

    def _delivered(self, node: Node, feed: Feed, upto: int, runs: list[list[int]]) -> None:
        feed.upto = upto
        batches = [encode([JUNK, *(Record(self.content[p]) for p in run)], now=1) for run in runs]
        message = Delivered(
            node.view,
            upto,
            upto > node.confirmed,
            tuple(Run(run[0], len(run)) for run in runs),
            tuple(batches),
            tuple((1, len(run)) for run in runs),
        )
        node.outbox.append((feed.request, message))

    # What the client does.

    def hear(self, shard: str, count: int) -> None:
        """So many messages reach the client."""
        node = self.nodes[shard]
        told, node.outbox[:count] = node.outbox[:count], []
        if told:
            self.reply(shard, told)

    def reply(self, shard: str, replies: Sequence[tuple[int, ToClient]]) -> None:
        """These messages of the shard's node reach the client."""
        self.give(Heard(replies, self._lines[node_of(shard)]))

    def snap(self, shard: str) -> None:
        """The connection breaks, with all that is in it."""
        node = self.nodes[shard]
        node.feeds.clear()
        node.outbox.clear()
        if node.connected:
            node.connected = False
            self.give(Disconnected("it broke", self._lines[node_of(shard)]))

    def ring(self) -> bool:
        """Time passes until the client's timer is due."""
        if self.timer is None:
            return False
        self.now, self.timer = max(self.now, self.timer), None
        self.give(TimerFired(Alarms.KEY))
        return True

    def give(self, event: Event) -> None:
        self._events.append(event)
        self._go_on()

    def _go_on(self) -> None:
        while self._events:
            self._perform(self.session.step(self.now, self._events.pop(0)))

    def _perform(self, effects: list[Effect]) -> None:
        for effect in effects:
            match effect:
                case SetTimer(_, at):
                    self.timer = at
                case Dial(line, node):
                    self._lines[node] = line
                    self._node(node).connected = True
                    self._events.append(Connected(line))
                case HangUp(line):
                    node = self._node(self._name(line))
                    node.feeds.clear()
                    node.outbox.clear()
                    node.connected = False
                case Transmit(request, message, line):
                    self._asked(self._name(line), request, message)
                case _:
                    pass

    def _name(self, line: int) -> str:
        return next(node for node, each in self._lines.items() if each == line)

    def _node(self, name: str) -> Node:
        shard = name.partition(":")[0]
        return self.nodes.get(shard) or Node(shard)

    def _asked(self, name: str, request: int, message: ToServer) -> None:
        node = self._node(name)
        line = self._lines[name]
        match message:
            case Hello():
                welcome = Welcome(1, "c", name, "0", 1 << 20, 1 << 10)
                self._events.append(Heard([(request, welcome)], line))
            case Locate():
                knows = len(self.decisions) if name == SEQUENCER else node.applied
                self._events.append(Heard([(request, self._directory(knows))], line))
            case Subscribe(shard, start):
                self._subscribe(node, request, shard, start)
            case Credit(subscription, size):
                assert size > 0, subscription
                node.credited += size
            case Cancel(subscription):
                node.feeds.pop(subscription, None)
                node.outbox = [each for each in node.outbox if each[0] != subscription]
            case _:
                raise AssertionError(message)

    def _subscribe(self, node: Node, request: int, shard: str, start: int) -> None:
        failed: Failed | None = None
        for each in self.decisions[: node.applied]:
            if isinstance(each, Failed) and shard in each.shards:
                failed = each
            elif each == Returned(shard):
                failed = None
        if shard != node.shard and (failed is None or start < failed.since):
            name = node_of(node.shard)
            error = Refused.of(ShardElsewhere(name, shard))
            self._events.append(Heard([(request, error)], self._lines[name]))
            return
        node.feeds[request] = Feed(request, shard, start)
        if failed is not None and shard != node.shard:
            node.outbox.append((request, failed))
        if node.confirmed:
            node.outbox.append((request, Confirmed(node.view, node.confirmed)))

    def _directory(self, knows: int) -> Directory:
        """As it was after so many decisions, which is told by who had failed."""
        failed: set[str] = set()
        for each in self.decisions[:knows]:
            if isinstance(each, Failed):
                failed.update(each.shards)
            elif isinstance(each, Returned):
                failed.discard(each.shard)
        shards = tuple(
            Shard(
                shard,
                Standing.FAILED if shard in failed else Standing.SEATED,
                1,
                node_of(shard),
                (node_of(shard),),
                self.stand_in.get(shard, "") if shard in failed else "",
            )
            for shard in self.nodes
        )
        return Directory(knows, len(self.views), SEQUENCER, shards, self.confirmed, 0)


def settle(world: World) -> None:
    """Everybody learns everything, and everything that was said is heard."""
    for shard in world.nodes:
        world.restore(shard)
    for _ in range(40):
        for shard in world.nodes:
            while world.nodes[shard].applied < len(world.decisions):
                before = world.nodes[shard].applied
                world.apply(shard)
                if world.nodes[shard].applied == before:
                    break
            world.push(shard)
            world.hear(shard, 1 << 20)
        world.now += 100 * MS
        world.ring()
