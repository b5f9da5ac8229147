"""An Erwin log as a client may meet it: sequencing replicas, shards, and views that change at any
moment. It keeps the rules of decision 57 and none of their reasons, in one process and at one time.

Requests wait in a node's inbox and answers in its outbox until a test has them arrive; a connection
that breaks loses what is in both.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from msgspec.structs import replace
from tests.unit.client.erwin.nodes import Bound, Held, Member, Node, records_of, status_of

from anabranch.client.erwin.dialect import Codecs, FromNode, ToNode
from anabranch.client.erwin.pledge import Pledge
from anabranch.client.erwin.session import Effect, Event, Session
from anabranch.client.session.effects import (
    Asked,
    Connected,
    Dial,
    Disconnected,
    HangUp,
    Heard,
    Transmit,
    Written,
)
from anabranch.client.session.settings import Settings
from anabranch.core.alarms import Alarms
from anabranch.core.errors import (
    OutcomeUnknown,
    PositionTrimmed,
    RecordVoided,
    RequestForgotten,
    ShardAway,
    StaleView,
)
from anabranch.core.errors.refused import Refused
from anabranch.core.erwin.protocol import messages as of_shard
from anabranch.core.erwin.protocol.messages import (
    Data,
    Delivered,
    Read,
    Stored,
    Subscribe,
)
from anabranch.core.machine import SetTimer, TimerFired
from anabranch.core.producers import REQUEST_EPOCH
from anabranch.core.records.batch import verify
from anabranch.core.records.record import Record
from anabranch.core.sequencing.protocol import messages as of_sequencer
from anabranch.core.sequencing.protocol.ids import AppendId
from anabranch.core.sequencing.protocol.messages import (
    Append,
    AppendMeta,
    AskTail,
    Directory,
    Done,
    FindPosition,
    Found,
    Inspect,
    Locate,
    Shard,
    Tail,
    Taken,
    Trim,
)
from anabranch.core.types import MS
from anabranch.core.wire.session import Cancel, Credit

CLUSTER = "c"


class World:
    """And one client in it."""

    def __init__(
        self,
        members: int = 2,
        shards: Sequence[str] = ("a",),
        mode: str = "m",
        *,
        step: Callable[[Event], None] | None = None,
        **settings: Any,
    ) -> None:
        """`step`: takes what the client hears, in place of a session of this world's own."""
        self.mode = mode
        self.now, self.timer = 0, None
        self.rows: list[Bound] = []
        """The ordered log."""
        self.trimmed = 0
        self.closed: set[str] = set()
        """Shards that take no new records."""
        self.asked: Counter[str] = Counter()
        """Requests that arrived, by their names."""
        self._finding: list[tuple[Node, int, AppendId]] = []
        self._lines: dict[int, Node] = {}
        self._events: list[Event] = []
        self.nodes = {f"q{i}": Node(f"q{i}") for i in range(members + 1)}
        self.nodes |= {f"{s}{r}": Node(f"{s}{r}") for s in shards for r in range(2)}
        self.sequencers = [f"q{i}" for i in range(members)]
        for name in self.sequencers:
            self.nodes[name].member = Member(view=1)
        self.configurations = [self._directory(1, self.sequencers, shards)]
        self._step = step or self._step_session
        if step is not None:
            return
        picks = iter(range(1, 1 << 30))
        self.session = Session(
            CLUSTER,
            Settings(**settings),
            lambda bits: next(picks) % (1 << bits),
            ["q0"],
            Codecs(None, None),  # pyright: ignore[reportArgumentType]  # frames aren't written here
        )
        self.perform(self.session.start(self.now))
        self._go_on()

    # What is decided.

    @property
    def directory(self) -> Directory:
        return self.configurations[-1]

    @property
    def leader(self) -> Node:
        return self.nodes[self.directory.leader]

    def _directory(
        self, view: int, members: Sequence[str], shards: Sequence[str], lost_view: int = 0
    ) -> Directory:
        served = tuple(
            Shard(name=name, primary=f"{name}0", replicas=(f"{name}0", f"{name}1"))
            for name in shards
        )
        version = len(self.configurations) + 1 if view > 1 else 1
        return Directory(
            version=version,
            view=view,
            members=tuple(members),
            leader=members[0],
            shards=served,
            mode=self.mode,
            lost_view=lost_view,
        )

    def change_view(self, source: str, members: Sequence[str], *, lost: bool = False) -> None:
        """The next view, with the state of this member of the last one; `lost`: with none."""
        last = self.directory
        assert source in last.members
        for name in last.members:
            member = self.nodes[name].member
            assert member is not None
            member.sealed = True
        kept = self.nodes[source].member
        assert kept is not None
        state = Member() if lost else kept.copy()
        view = last.view + 1
        for name in members:
            state.view, state.sealed = view, False
            self.nodes[name].member = state.copy()
        shards = [each.name for each in last.shards]
        lost_view = last.view if lost else last.lost_view
        self.configurations.append(self._directory(view, members, shards, lost_view))
        for name in members:
            self.nodes[name].knows = len(self.configurations) - 1

    def add_shard(self, shard: str) -> None:
        """To the configuration, in the same view."""
        known = self.directory
        names = [f"{shard}{replica}" for replica in range(2)]
        self.nodes |= {name: Node(name) for name in names}
        added = Shard(name=shard, primary=names[0], replicas=tuple(names))
        version = known.version + 1
        shards = (*known.shards, added)
        self.configurations.append(replace(known, version=version, shards=shards))

    def enter_epoch(self, shard: str, epoch: int) -> None:
        """The shard has other replicas, or the same ones anew."""
        known = self.directory
        shards = tuple(
            replace(e, epoch=epoch if e.name == shard else e.epoch) for e in known.shards
        )
        self.configurations.append(replace(known, version=known.version + 1, shards=shards))

    def close_shard(self, shard: str) -> None:
        """It takes no new records."""
        known = self.directory
        self.closed.add(shard)
        shards = tuple(replace(e, open=e.open and e.name != shard) for e in known.shards)
        self.configurations.append(replace(known, version=known.version + 1, shards=shards))

    def remove_shard(self, shard: str) -> None:
        """It is closed, and all its records are trimmed."""
        self.close_shard(shard)
        known = self.configurations.pop()
        shards = tuple(each for each in known.shards if each.name != shard)
        self.configurations.append(replace(known, shards=shards, removed=(shard,)))
        for name in self.nodes:
            self.learn(name)

    def learn(self, name: str) -> None:
        """The node learns the latest configuration."""
        self.nodes[name].knows = len(self.configurations) - 1

    def order(self, count: int, *, noop: bool = True) -> None:
        """The leader orders so many appends, everybody drops them, and they are stable. Without
        `noop` a row waits for its data.
        """
        for _ in range(count):
            leader = self.leader.member
            assert leader is not None
            if not leader.ring:
                return
            held = leader.ring[0]
            serving = self.directory.shards[len(self.rows) % len(self.directory.shards)].name
            batch = held.batch
            if self.mode == "st":
                serving = held.shard
                found = [self.nodes[f"{serving}{r}"].data.pop(held.id, b"") for r in range(2)]
                if not all(found) and not noop:
                    return
                batch = found[0]  # the primary's: a backup that has it must drop it
            first = self.rows[-1].end if self.rows else 0
            self.rows.append(Bound(held.id, first, held.count, serving, batch))
            for name in self.directory.members:
                member = self.nodes[name].member
                assert member is not None
                member.ring = [each for each in member.ring if each.id != held.id]
                member.known[held.id] = held.shard
            self._answer_finds()
            self._feed()

    def forget_producers(self) -> None:
        """All members forget whoever has nothing in a ring."""
        for name in self.directory.members:
            member = self.nodes[name].member
            assert member is not None
            held = {(each.id.producer, each.id.epoch) for each in member.ring}
            held |= {(i.producer, i.epoch) for i in member.known if i.epoch == REQUEST_EPOCH}
            member.lowest = {p: low for p, low in member.lowest.items() if p in held}
            member.known = {i: s for i, s in member.known.items() if (i.producer, i.epoch) in held}

    @property
    def stable(self) -> int:
        return self.rows[-1].end if self.rows else 0

    def values(self) -> list[bytes | None]:
        """Of the ordered log, without no-ops."""
        return [value for row in self.rows for value in row.values()]

    # What nodes answer.

    def arrive(self, name: str, count: int = 1) -> None:
        """So many requests arrive at the node."""
        node = self.nodes[name]
        arriving, node.inbox[:count] = node.inbox[:count], []
        for request, message in arriving:
            self.asked[type(message).__name__] += 1
            answer = self._answer(node, request, message)
            if answer is not None:
                node.outbox.append((request, answer))

    def hear(self, name: str, count: int = 1) -> None:
        """So many answers reach the client."""
        node = self.nodes[name]
        heard, node.outbox[:count] = node.outbox[:count], []
        if heard and node.line is not None:
            self.give(Heard(heard, node.line))

    def snap(self, name: str) -> None:
        """The connection breaks, with all that is in it."""
        node = self.nodes[name]
        line = self._close(node)
        if line is not None:
            self.give(Disconnected("it broke", line))

    def _answer(self, node: Node, request: int, message: ToNode) -> FromNode | None:
        match message:
            case of_sequencer.Hello():
                return of_sequencer.Welcome(1, CLUSTER, node.name, "0", 1 << 20, 1 << 10)
            case of_shard.Hello():
                return of_shard.Welcome(1, CLUSTER, node.name, "0", 1 << 20, 1 << 10)
            case Locate():
                return self.configurations[node.knows]
            case Append(view, lowest, batch):
                header = verify(batch, "a test")
                held = Held(AppendId.of(header), header.count, batch)
                return self._take(node, view, held, lowest)
            case AppendMeta(shard=shard) if shard in self.closed:
                return Refused.of(ShardAway(shard, "it is closed"))
            case AppendMeta(view, lowest, id, count, _, shard):
                return self._take(node, view, Held(id, count, b"", shard), lowest)
            case Data(batch=batch):
                return self._store(node, AppendId.of(verify(batch, "a test")), batch)
            case AskTail(view):
                return self._tail(node, view)
            case FindPosition(id):
                return self._find(node, request, id)
            case Trim(position):
                self.trimmed = position
                return Done()
            case Inspect():
                return status_of(
                    self.directory, self.mode, stable=self.stable, trimmed=self.trimmed
                )
            case Read():
                return self._read(message)
            case Subscribe(start=start):
                if start < self.trimmed:
                    return Refused.of(PositionTrimmed(start, self.trimmed))
                node.feeds[request] = start
                self._feed()
                return None
            case Cancel(cancelled):
                node.feeds.pop(cancelled, None)
                self._finding = [e for e in self._finding if e[:2] != (node, cancelled)]
                return None
            case Credit():
                return None
            case _:
                raise AssertionError(message)

    def _take(self, node: Node, view: int, held: Held, lowest: int) -> FromNode:
        member = node.member
        if node.unsure:
            return Refused.of(OutcomeUnknown("an append", "its view ended", "send it again"))
        if member is None or member.sealed or member.view != view:
            known = 0 if member is None else member.view
            return Refused.of(StaleView("an append", view, known))
        answer = member.take(held, lowest)
        return Taken(answer) if isinstance(answer, str) else Refused.of(answer)

    def _store(self, node: Node, id: AppendId, batch: bytes) -> FromNode:
        for row in self.rows:
            if row.id == id:
                return Stored() if row.batch else Refused.of(RecordVoided(row.shard))
        node.data[id] = batch
        return Stored()

    def _tail(self, node: Node, view: int) -> FromNode:
        member = node.member
        if member is None or member.sealed or member.view != view:
            return Refused.of(StaleView("a tail", view, 0))
        return Tail(self.stable, self.stable + sum(each.count for each in member.ring))

    def _find(self, node: Node, request: int, id: AppendId) -> FromNode | None:
        if node is not self.leader:
            return of_sequencer.Elsewhere(self.directory.leader)
        found = next((row.first for row in self.rows if row.id == id), None)
        if found is not None:
            return Found(found)
        assert node.member is not None
        if all(each.id != id for each in node.member.ring):
            return Refused.of(RequestForgotten("an append"))
        self._finding.append((node, request, id))
        return None

    def _answer_finds(self) -> None:
        for each in list(self._finding):
            node, request, id = each
            found = next((row.first for row in self.rows if row.id == id), None)
            if found is not None:
                node.outbox.append((request, Found(found)))
                self._finding.remove(each)

    def _read(self, asked: Read) -> FromNode:
        if asked.start < self.trimmed:
            return Refused.of(PositionTrimmed(asked.start, self.trimmed))
        return records_of(self.rows, asked, self.trimmed)

    def _feed(self) -> None:
        for node in self.nodes.values():
            for request, start in node.feeds.items():
                if self.stable > start:
                    shard = node.name[:-1]
                    rows = [r for r in self.rows if r.end > start and r.shard == shard]
                    news = Delivered(
                        upto=self.stable,
                        firsts=tuple(row.first for row in rows),
                        counts=tuple(row.count for row in rows),
                        batches=tuple(row.batch for row in rows),
                    )
                    node.outbox.append((request, news))
                    node.feeds[request] = self.stable

    # What the client does.

    def append(self, value: bytes, timeout_ms: int = 10_000, **options: Any) -> Pledge:
        pledge = self.session.appender.add(Record(value), timeout_ms, **options)
        self.give(Written())
        return pledge

    def request(self, request_id: str, *values: bytes) -> Pledge:
        records = [Record(value) for value in values]
        pledge = self.session.appender.add_batch(records, 10_000, request_id)
        self.give(Written())
        return pledge

    def ask(self, call: Any) -> Any:
        self.give(Asked(call))
        return call

    def ring(self) -> bool:
        """Time passes until the client's timer is due."""
        if self.timer is None:
            return False
        self.now, self.timer = max(self.now, self.timer), None
        self.give(TimerFired(Alarms.KEY))
        return True

    def pass_ms(self, ms: int) -> None:
        end = self.now + ms * MS
        while self.timer is not None and self.timer <= end:
            self.ring()
        self.now = end

    def settle(self, rounds: int = 60, *, noop: bool = True) -> None:
        """Everything that was said arrives, and everybody learns where the log is.

        `noop`: mode st: a row whose data isn't there is bound to no-ops.
        """
        for name in self.nodes:
            self.nodes[name].refusing = False
            self.learn(name)
        for _ in range(rounds):
            self.flow()
            self.order(1 << 20, noop=noop)
            self.flow()
            self.pass_ms(100)

    def flow(self, *, but: str = "") -> None:
        """Everything that is on its way arrives, and what is sent for it; nothing `but` this node
        is sent.
        """
        nodes = [node for name, node in self.nodes.items() if name != but]
        self._go_on()
        while any(node.inbox or node.outbox for node in nodes):
            for node in nodes:
                self.arrive(node.name, 1 << 20)
                self.hear(node.name, 1 << 20)

    def give(self, event: Event) -> None:
        self._events.append(event)
        self._go_on()

    def _go_on(self) -> None:
        while self._events:
            self._step(self._events.pop(0))

    def _step_session(self, event: Event) -> None:
        self.perform(self.session.step(self.now, event))

    def perform(self, effects: Sequence[Effect]) -> None:
        for effect in effects:
            match effect:
                case SetTimer(_, at):
                    self.timer = at
                case Dial(line, name):
                    self._dialed(line, self.nodes[name])
                case HangUp(line):
                    self._close(self._lines[line])
                case Transmit(request, message, line):
                    node = self._lines[line]
                    if node.line == line:
                        node.inbox.append((request, message))
                case _:
                    pass

    def _dialed(self, line: int, node: Node) -> None:
        self._lines[line] = node
        if node.refusing:
            self._events.append(Disconnected("it refuses", line))
        else:
            node.line = line
            self._events.append(Connected(line))

    def _close(self, node: Node) -> int | None:
        node.inbox.clear()
        node.outbox.clear()
        node.feeds.clear()
        self._finding = [each for each in self._finding if each[0] is not node]
        line, node.line = node.line, None
        return line


def acknowledged(pledge: Pledge) -> bool:
    return isinstance(pledge.outcome, AppendId)


def ready(mode: str = "m", **settings: Any) -> World:
    """A world whose client is connected to everybody."""
    world = World(2, ("a", "b"), mode, **settings)
    world.append(b"first")
    world.settle(2)
    assert world.values() == [b"first"]
    return world
