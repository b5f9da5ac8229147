"""A lazy log as a list, sequencing replicas in front of it, and faults: what a property runs.

Its one shard does at once what it is asked; its controller keeps its decisions over everything. So
whatever goes wrong is the replicas' fault.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from tests.unit.core.sequencing.group import CONTROLLER, LIMITS, Group, batch_of

from anabranch.core.limits import Limits
from anabranch.core.machine import Send
from anabranch.core.sequencing.protocol.ids import AppendId, Member
from anabranch.core.sequencing.protocol.letters import Prepare, Prepared, Seal, Sealed, Start
from anabranch.core.sequencing.protocol.messages import Append, AppendMeta, AskTail, Tail, Taken
from anabranch.core.sequencing.state.ring import Entry
from anabranch.core.sequencing.view import Ballot, View
from anabranch.core.types import Position

Fence = tuple[int, int]


@dataclass
class Log:
    """What all shards hold, and what readers may have seen of it."""

    fence: Fence = (0, 0)
    ids: list[AppendId] = field(default_factory=list[AppendId])
    seen: list[AppendId] = field(default_factory=list[AppendId])

    def push(self, fence: Fence, base: Position, first: Position, ids: list[AppendId]) -> bool:
        if fence < self.fence:
            return False
        if fence > self.fence:
            assert len(self.seen) <= base <= len(self.ids), "a base lies in what all shards hold"
            self.fence = fence
            del self.ids[base:]
        assert first == len(self.ids)
        self.ids += ids
        return True

    def read(self, stable: Position) -> None:
        assert stable <= len(self.ids)
        assert self.ids[: len(self.seen)] == self.seen, "what was read has changed"
        self.seen += self.ids[len(self.seen) : stable]
        assert len({*self.seen}) == len(self.seen), "an append is in the log once"


@dataclass
class Ordering:
    """What a leader does between two `on_...` of its replica."""

    fence: Fence
    base: Position
    pushed: list[AppendId] = field(default_factory=list[AppendId])


class World:
    def __init__(
        self,
        names: Sequence[str],
        *,
        fsync: bool,
        data_on_shards: bool = False,
        limits: Limits = LIMITS,
    ) -> None:
        self.group = Group(*names, fsync=fsync, data_on_shards=data_on_shards, limits=limits)
        self.data_on_shards = data_on_shards
        self.fsync = fsync
        self.log = Log()
        self.view: View | None = None
        """The configured one."""
        self.attempt = 0
        self.source: str | None = None
        self.orderings: dict[str, Ordering] = {}
        self.sent: dict[AppendId, set[AppendId]] = {}
        """By append: what was acknowledged before it was sent for the first time."""
        self.acknowledged: set[AppendId] = set()
        self.asked: dict[int, tuple[AppendId | int, int]] = {}
        """By token: the append, or how many were acknowledged when the tail was asked for; and the
        view.
        """
        self.takers: dict[tuple[AppendId, int], set[str]] = {}
        self.group.run()
        self.attempt_view()
        self.prepare(0, [*names])
        self.group.run()
        self.configure(0)
        self.group.run()

    # Clients.

    def append(self, producer: int, *, repeat: int | None = None, without: str = "") -> None:
        """A new append, or one that was sent before, to all members of the view; `without`: what
        is sent to this node is lost.
        """
        mine = [id for id in self.sent if id.producer == producer]
        if repeat is not None and mine:
            id = mine[repeat % len(mine)]
        else:
            id = AppendId(producer, 0, len(mine))
            self.sent[id] = set(self.acknowledged)
            mine.append(id)
        unacknowledged = [each.sequence for each in mine if each not in self.acknowledged]
        lowest = min([*unacknowledged, id.sequence])
        assert self.view is not None
        message: Append | AppendMeta = Append(self.view.number, lowest, batch_of(id))
        if self.data_on_shards:
            message = AppendMeta(self.view.number, lowest, id, 1, 10, "a")
        for name in self.view.nodes:
            if name != without and self.group[name].up:
                token = next(self.group.tokens)
                self.asked[token] = id, self.view.number
                assert self.group[name].request(token, message)
        self.listen()

    def ask_tail(self) -> None:
        assert self.view is not None
        view = self.view
        if not all(self.group[name].up for name in view.nodes):
            return
        tails: list[Position] = []
        for name in view.nodes:
            token = next(self.group.tokens)
            self.group[name].request(token, AskTail(view.number))
            answer = self.group.answers.pop(token)[1]
            if not isinstance(answer, Tail):
                return
            if name == view.leader:
                tails.append(answer.tail)
        assert tails[0] >= len(self.acknowledged), "a tail counts all that was acknowledged"

    def listen(self) -> None:
        """An append is acknowledged when all members of one view have answered."""
        for token, (name, answer) in list(self.group.answers.items()):
            asked = self.asked.pop(token, None)
            del self.group.answers[token]
            if asked is None or not isinstance(answer, Taken):
                continue
            id, view = asked
            assert isinstance(id, AppendId)
            self.takers.setdefault((id, view), set()).add(name)
        if self.view is None:
            return
        for (id, view), names in self.takers.items():
            if names >= self.members[view]:
                self.acknowledged.add(id)

    # The leader.

    def order(self, name: str, count: int) -> None:
        """Push some entries, then order some of what was pushed."""
        node = self.group[name]
        if not node.up or not node.replica.leads:
            return
        view = node.replica.view
        assert view is not None
        fence = (view.number, node.replica.begun)
        ordering = self.orderings.get(name)
        if ordering is None or ordering.fence != fence:
            ordering = self.orderings[name] = Ordering(fence, node.replica.ordered)
        taken: list[Entry] = node.replica.take(bytes_max=1 << 20, count_max=count)
        first = node.ordered + len(ordering.pushed)
        ids = [entry.id for entry in taken]
        if self.log.push(fence, ordering.base, first, ids):
            ordering.pushed += ids
        else:
            ordering.pushed.clear()
            return
        some = ordering.pushed[: max(1, count - 1)]
        del ordering.pushed[: len(some)]
        if some:
            node.order(some)
        self.read()

    def read(self) -> None:
        for node in self.group.nodes.values():
            if node.up and node.replica.leads:
                assert node.replica.view is not None
                if (node.replica.view.number, node.replica.begun) == self.log.fence:
                    self.log.read(node.replica.stable)

    # The controller.

    def attempt_view(self) -> None:
        self.attempt += 1
        self.source = None
        self.seal()

    @property
    def ballot(self) -> Ballot:
        return Ballot(self.number + 1, 1, self.attempt)

    @property
    def number(self) -> int:
        return self.view.number if self.view else 0

    def seal(self) -> None:
        if self.view is not None:
            for name in self.view.nodes:
                self._send(name, Start(self.view))
                self._send(name, Seal(self.ballot, self.view.number))

    def prepare(self, choice: int, names: list[str]) -> None:
        """Repeated, it names the same source."""
        if self.view is not None and self.source is None:
            sealed = [
                letter.node
                for letter in self.group.said
                if isinstance(letter, Sealed)
                and letter.ballot == self.ballot
                and self.view.has(letter.node, letter.life)
            ]
            if not sealed:
                return
            self.source = sealed[choice % len(sealed)]
        for name in names:
            self._send(name, Prepare(ballot=self.ballot, source=self.source or ""))

    def configure(self, choice: int) -> None:
        prepared = {
            letter.node: letter
            for letter in self.group.said
            if isinstance(letter, Prepared) and letter.ballot == self.ballot
        }
        if not any(self._lives(letter) for letter in prepared.values()):
            return
        names = sorted(prepared)
        assert len({letter.base for letter in prepared.values()}) == 1
        self.view = View(
            ballot=self.ballot,
            members=tuple(Member(name, prepared[name].life) for name in names),
            leader=names[choice % len(names)],
            base=prepared[names[0]].base,
        )
        self.members[self.view.number] = set(names)
        self.attempt = 0
        self.start()

    def _lives(self, letter: Prepared) -> bool:
        node = self.group[letter.node]
        return self.fsync or (node.up and node.replica.life == letter.life)

    def start(self) -> None:
        if self.view is not None:
            for name in self.view.nodes:
                self._send(name, Start(self.view))

    @property
    def members(self) -> dict[int, set[str]]:
        if not hasattr(self, "_members"):
            self._members: dict[int, set[str]] = {}
        return self._members

    def _send(self, name: str, letter: Start | Seal | Prepare) -> None:
        self.group.letters.append((CONTROLLER, Send(name, letter)))

    # Faults.

    def deliver(self, which: int, *, kept: bool) -> None:
        """Any letter that is under way; kept, it comes again."""
        letters = self.group.letters
        if letters:
            at = which % len(letters)
            sender, send = letters[at] if kept else letters.pop(at)
            self.group.deliver(sender, send)
            self.read()
            self.listen()

    def settle(self) -> None:
        """Everything that is under way arrives."""
        self.group.run()
        self.read()
        self.listen()

    def lose(self, which: int) -> None:
        if self.group.letters:
            del self.group.letters[which % len(self.group.letters)]

    def write(self, name: str) -> None:
        node = self.group[name]
        if node.up and node.writing is not None:
            node.write()
            self.read()
            self.listen()

    def crash(self, name: str, *, kept: bool) -> None:
        """In memory, the last member of the view that lives doesn't crash."""
        node = self.group[name]
        if not node.up:
            return
        if not self.fsync and not self._others_live(name):
            return
        node.crash(kept=kept)

    def _others_live(self, name: str) -> bool:
        assert self.view is not None
        others = [each for each in self.view.nodes if each != name]
        return any(
            self.group[each].up and self.view.has(each, self.group[each].replica.life)
            for each in others
        )

    def restart(self, name: str) -> None:
        if not self.group[name].up:
            self.group.now += 1_000_000
            self.group[name].start(self.group.now)
            self.orderings.pop(name, None)

    # What must be true.

    def check(self) -> None:
        """Of members that live: whoever lacks an acknowledged append has it ordered (E1)."""
        if self.view is None:
            return
        for id in self.acknowledged:
            for member in self.view.members:
                node = self.group[member.node]
                if not node.up or node.replica.life != member.life:
                    continue
                replica = node.replica
                if replica.view is None or replica.view.number != self.view.number:
                    continue
                held = id in replica.ring or id in self.log.ids[: node.ordered]
                assert held, f"{id} is neither in the ring of {member.node} nor ordered"

    def recover(self) -> None:
        """Everything works again, and one more view change leads to a log that has everything."""
        for name in self.group.nodes:
            self.restart(name)
        for _ in range(8):
            self.group.wait(100)
            self.group.run()
        self.attempt_view()
        for _ in range(3):
            self.seal()
            self.group.run()
        self.prepare(0, [*self.group.nodes])
        for _ in range(4):
            self.group.run()
            self.group.wait(100)
        self.configure(0)
        for _ in range(4):
            self.group.run()
            self.start()
            self.group.wait(100)
        for id in list(self.sent):
            self.append(id.producer, repeat=id.sequence)
            self._drain()
        assert self.acknowledged == {*self.sent}, "all that was repeated is acknowledged"
        self.check()
        self.ask_tail()
        self._drain()
        assert self.view is not None
        assert {*self.log.seen} == {*self.sent}
        places = {id: position for position, id in enumerate(self.log.seen)}
        for id, before in self.sent.items():
            assert all(places[other] < places[id] for other in before), "real-time order"
        for name in self.view.nodes:
            assert len(self.group[name].replica.ring) == 0

    def _drain(self) -> None:
        assert self.view is not None
        before = -1
        while before < len(self.log.seen):
            before = len(self.log.seen)
            for _ in range(3):
                self.group.run()
                self.listen()
                self.order(self.view.leader, 100)
