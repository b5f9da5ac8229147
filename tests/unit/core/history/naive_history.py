"""Histories that a correct service could have made: the naive model answers random calls.

Every call has one moment at which it happens. Its answer may be lost, and the times at which a
client asked and was answered may lie around that moment as they like.
"""

from dataclasses import dataclass, field
from random import Random

from anabranch.core.bolt.protocol.commands import (
    Batch,
    Command,
    CommitCursor,
    CommitObject,
    CreateLog,
    DeleteLog,
    Expire,
    ForkLog,
    Row,
)
from anabranch.core.bolt.protocol.commands import Promote as PromoteLog
from anabranch.core.bolt.protocol.commands import Squash as SquashLog
from anabranch.core.bolt.protocol.commands import Trim as TrimLog
from anabranch.core.history.calls import (
    UNTOLD,
    AnyCall,
    Append,
    Confirmation,
    Create,
    Delete,
    Delivery,
    Failure,
    Fate,
    Final,
    Fork,
    History,
    Look,
    MarkCursor,
    Origin,
    Promote,
    Read,
    ReadCursor,
    RecordId,
    Redeem,
    Squash,
    Stream,
    Trim,
    Verdict,
)
from anabranch.core.types import NEVER, Kind, LogId, ObjectId, OnParentDelete, Position
from anabranch_sim.bolt.naive_model import List, Naive, Promise, Record, Refusal

GAP = 10
"""Between the moments of two calls."""

LOGS_MAX = 8


@dataclass
class Subscriber:
    """A subscription that was opened at the start of its log."""

    stream: Stream
    final: Position
    speculative: list[RecordId] = field(default_factory=list[RecordId])


class NaiveHistory:
    """Makes random calls, records what their clients see, and asks for everything at the end."""

    def __init__(self, seed: int, *, overlapping: bool = False) -> None:
        self.chance = Random(seed)
        self.overlapping = overlapping
        self.naive = Naive()
        self.history = History()
        self.now = 1_000
        self.ids: dict[Record, RecordId] = {}
        self.names: dict[LogId, str] = {}
        self.roots: set[LogId] = set()
        self.promises: list[tuple[Promise, list[RecordId]]] = []
        self.subscribers: list[Subscriber] = []
        self._clients = 0
        self.create()

    @property
    def logs(self) -> list[List]:
        return list(self.naive.logs.values())

    def play(self, steps: int) -> History:
        moves = {
            self.append: 30,
            self.fork: 14,
            self.read: 12,
            self.redeem: 8,
            self.follow: 8,
            self.look: 6,
            self.promote: 6,
            self.subscribe: 4,
            self.mark_cursor: 4,
            self.read_cursor: 4,
            self.squash: 3,
            self.trim: 3,
            self.expire: 2,
            self.create: 1,
            self.delete: 1,
        }
        for _ in range(steps):
            (move,) = self.chance.choices([*moves], [*moves.values()])
            move()
        self._finish()
        return self.history

    def create(self) -> None:
        name = f"root-{len(self.names)}"
        id = LogId(self.naive.next_id)
        self.naive.apply(self.now, CreateLog(name))
        self.names[id] = name
        self.roots.add(id)
        self._say(Create(client=0, log=id, invoked=0, name=name), Verdict.OK)

    def delete(self) -> None:
        roots = [log.id for log in self.logs if log.kind is Kind.ROOT]
        if len(roots) > 1:
            log = self.chance.choice(roots)
            self._change(DeleteLog(log, force=True), Delete(client=0, log=log, invoked=0))

    def append(self) -> None:
        log = self._any()
        first = len(self.ids) + self.now * 10
        count = self.chance.choice((1, 1, 2, 3))
        call = Append(client=0, log=log, invoked=0, records=[first + nth for nth in range(count)])
        if self._vanishes(call):
            return
        object = ObjectId(self.now)
        batch = Batch(10 * count, count)
        fates = self.naive.apply(self.now, CommitObject("b", object, [Row(log, 0, [batch])]))
        assert fates is not None
        ((fate,),) = fates
        if isinstance(fate, str):
            self._say(call, Verdict.REFUSED, fate)
            return
        made = [each for each in self.naive.logs[log].records if each.object == object]
        assert len(made) == count
        self.ids.update(zip(made, call.records, strict=True))
        if isinstance(fate, Promise):
            self.promises.append((fate, call.records))
        else:
            call.position = fate
        self._say_or_lose(call)

    def fork(self) -> None:
        if len(self.naive.logs) >= LOGS_MAX:
            self.squash()
            return
        chance, parent = self.chance, self._any()
        kind = chance.choice((Kind.CONTINUOUS, Kind.CONTINUOUS, Kind.SEVERED))
        severed = kind is Kind.SEVERED
        lives = chance.choice((None, None, None, 400))
        cascades = severed and chance.random() < 0.3
        past = None
        if severed and parent in self.naive.logs and chance.random() < 0.5:
            past = chance.randrange(-1, len(self.naive.logs[parent].records) + 1)
        own = f"fork-{self.now}"
        command = ForkLog(
            parent,
            kind,
            name=own,
            past=past,
            promotable=not severed and chance.random() < 0.5,
            ttl_ms=lives,
            on_parent_delete=OnParentDelete.CASCADE if cascades else OnParentDelete.ORPHAN,
        )
        call = Fork(
            client=0,
            log=UNTOLD,
            invoked=0,
            name=f"{self.names[parent].partition('--')[0]}--{own}",
            parent=parent,
            kind=kind,
            past=past,
            promotable=command.promotable,
            lives=NEVER if lives is None else lives,
            cascades=cascades,
        )
        id = LogId(self.naive.next_id)
        if self._vanishes(call) or not self._applied(command, call):
            return
        self.names[id] = call.name
        if self.chance.random() < 0.1:
            self._say(call, Verdict.UNKNOWN)
            return
        call.log, call.fork_point = id, self.naive.logs[id].fork_point
        self._say(call, Verdict.OK)

    def promote(self) -> None:
        promotable = [log.id for log in self.logs if log.promotable]
        if promotable:
            log = self.chance.choice(promotable)
            parent = self.naive.logs[log].parent
            assert parent is not None
            rivals = [rival.name for rival in parent.undecided() if rival.id != log]
            call = Promote(client=0, log=log, invoked=0, squashed=rivals)
            self._change(PromoteLog(log), call)

    def squash(self) -> None:
        forks = [log.id for log in self.logs if log.kind is not Kind.ROOT]
        if forks:
            log = self.chance.choice(forks)
            self._change(SquashLog(log), Squash(client=0, log=log, invoked=0))

    def trim(self) -> None:
        log = self._any_alive()
        before = self.chance.randrange(log.settled() + 1)
        self._change(TrimLog(log.id, before), Trim(client=0, log=log.id, invoked=0, before=before))

    def expire(self) -> None:
        """Time passes for logs that have a time to live."""
        self.now += 150
        due = [
            log.id for log in self.logs if log.expires_at is not None and log.expires_at <= self.now
        ]
        self.naive.apply(self.now, Expire(due))

    def read(self) -> None:
        log = self._any_alive()
        settled = log.settled()
        if log.start > settled:
            return
        first = self.chance.randrange(log.start, settled + 1)
        last = self.chance.randrange(first, settled + 1)
        call = Read(
            client=0,
            log=log.id,
            invoked=0,
            first=first,
            records=self._records(log, first, last),
            origins=self._origins(log, first, last) if self.chance.random() < 0.5 else [],
            start=log.start,
            tail=len(log.records),
            settled=settled,
        )
        self._say(call, Verdict.OK)

    def look(self) -> None:
        log = self._any_alive()
        tail, settled = len(log.records), log.settled()
        call = Look(client=0, log=log.id, invoked=0, start=log.start, tail=tail, settled=settled)
        self._say(call, Verdict.OK)

    def redeem(self) -> None:
        if not self.promises:
            return
        promise, records = self.chance.choice(self.promises)
        call = Redeem(client=0, log=promise.log, invoked=0, records=records)
        try:
            log, position = self.naive.whereabouts(promise)
        except Refusal as refusal:
            self._say(call, Verdict.REFUSED, refusal.codes[0])
            return
        if position >= log.settled():
            self._say(call, Verdict.REFUSED, "receipt-pending")
            return
        call.into, call.position = log.id, position
        self._say(call, Verdict.OK)

    def mark_cursor(self) -> None:
        log = self._any_alive()
        position = self.chance.randrange(log.settled() + 1)
        name = self.chance.choice("ab")
        call = MarkCursor(client=0, log=log.id, invoked=0, name=name, position=position)
        self._change(CommitCursor(log.id, name, position), call)

    def read_cursor(self) -> None:
        log, name = self._any_alive(), self.chance.choice("ab")
        marked = log.cursors.get(name)
        call = ReadCursor(client=0, log=log.id, invoked=0, name=name)
        call.position = None if marked is None else len(marked)
        self._say(call, Verdict.OK)

    def subscribe(self) -> None:
        log = self._any_alive()
        start = self.chance.randrange(log.start, max(log.start, log.settled()) + 1)
        stream = Stream(client=0, log=log.id, invoked=0, start=start)
        self._say(stream, Verdict.OK)
        self.subscribers.append(Subscriber(stream, start))

    def follow(self) -> None:
        """Have one subscription see what has come since it was followed last."""
        live = [each for each in self.subscribers if each.stream.log in self.naive.logs]
        if live:
            self._push(self.chance.choice(live))
            self.now += GAP

    def _push(self, subscriber: Subscriber) -> None:
        log = self.naive.logs[subscriber.stream.log]
        pushes, seen = subscriber.stream.pushes, subscriber.speculative
        here = self._records(log, subscriber.final, len(log.records))
        same = next(
            (i for i, (old, new) in enumerate(zip(seen, here, strict=False)) if old != new),
            min(len(seen), len(here)),
        )
        if same < len(seen):
            del seen[same:]
            pushes.append(Failure(self.now, subscriber.final + same))
        sure = min(log.settled() - subscriber.final, len(seen))
        if sure > 0:
            subscriber.final += sure
            del seen[:sure]
            pushes.append(Confirmation(self.now, subscriber.final))
        if not seen and log.settled() > subscriber.final:
            settled = self._records(log, subscriber.final, log.settled())
            pushes.append(Delivery(self.now, subscriber.final, settled))
            subscriber.final = log.settled()
        ahead = self._records(log, subscriber.final + len(seen), len(log.records))
        if ahead:
            pushes.append(Delivery(self.now, subscriber.final + len(seen), ahead, speculative=True))
            seen += ahead

    def _any(self) -> LogId:
        """Seldom one that has ended."""
        if self.chance.random() < 0.05:
            return self.chance.choice(list(self.names))
        return self._any_alive().id

    def _any_alive(self) -> List:
        return self.chance.choice(self.logs)

    def _records(self, log: List, first: Position, end: Position) -> list[RecordId]:
        return [self.ids[record] for record in log.records[first:end]]

    def _origins(self, log: List, first: Position, end: Position) -> list[Origin]:
        return [(record.log, record.position) for record in log.records[first:end]]

    def _vanishes(self, call: AnyCall) -> bool:
        """Did the call never reach the service? Its client doesn't know."""
        if self.chance.random() < 0.05:
            self._say(call, Verdict.UNKNOWN)
            return True
        return False

    def _applied(self, command: Command, call: AnyCall) -> bool:
        try:
            self.naive.apply(self.now, command)
        except Refusal as refusal:
            self._say(call, Verdict.REFUSED, refusal.codes[0])
            return False
        return True

    def _change(self, command: Command, call: AnyCall) -> None:
        if not self._vanishes(call) and self._applied(command, call):
            self._say_or_lose(call)

    def _say_or_lose(self, call: AnyCall) -> None:
        lost = self.chance.random() < 0.08
        self._say(call, Verdict.UNKNOWN if lost else Verdict.OK)

    def _say(self, call: AnyCall, verdict: Verdict, code: str = "") -> None:
        call.client, call.verdict, call.code = 1, verdict, code
        call.invoked, call.returned = self.now, self.now + GAP // 2
        if self.overlapping:
            # A client of its own: what one client sends without waiting has an order.
            self._clients += 1
            call.client = 1 + self._clients
            call.invoked -= self.chance.randrange(4 * GAP)
            call.returned += self.chance.randrange(4 * GAP)
        if verdict is Verdict.UNKNOWN:
            call.returned = NEVER
        self.history.calls.append(call)
        self.now += GAP

    def _finish(self) -> None:
        for id, name in self.names.items():
            log = self.naive.logs.get(id)
            if log is not None:
                self.history.finals.append(self._final(log))
                continue
            gone = self.naive.gone[id]
            fate = Fate.PROMOTED if gone.code == "promoted" else Fate.SQUASHED
            self.history.finals.append(
                Final(log=id, name=name, fate=Fate.DELETED if id in self.roots else fate)
            )
        self.history.ended = self.now + 100 * GAP

    def _final(self, log: List) -> Final:
        settled = max(log.settled(), log.start)
        return Final(
            log=log.id,
            name=log.name,
            kind=log.kind,
            fork_point=log.fork_point,
            start=log.start,
            tail=len(log.records),
            settled=settled,
            promotable=log.promotable,
            records=self._records(log, log.start, settled),
            origins=self._origins(log, log.start, settled),
        )
