"""What every user of `core.replication` must hold, whatever fails: replicas of one log under
seeded schedules of faults, with writers of several views.

Letters are lost, repeated, cut short and late; disks are slow, full and lost; nodes crash;
primaries change. The world checks after each step:

- agreement and durability: what was durable once is there, unchanged, on every primary that the
  arranger counts on from then on, unless a writer replaced that part of the tail;
- fencing: what a writer of an earlier view appends after a later view was established, on whichever
  primary, never becomes durable;
- in the end, when nothing fails any more, all replicas hold the same.
"""

from collections.abc import Callable
from random import Random

import msgspec
from tests.unit.core.replication.arranger import Arranger
from tests.unit.core.replication.replica import ARRANGER, Node, Sealed

from anabranch.core.errors import StaleView
from anabranch.core.machine import Send
from anabranch.core.quorum import MAJORITY, Quorum
from anabranch.core.replication.letters import Copy
from anabranch.core.replication.replica import Role
from anabranch.core.types import MS


class World:
    def __init__(
        self,
        seed: int,
        count: int,
        *,
        quorum: Quorum = MAJORITY,
        user: type[Node] = Node,
        views: bool = True,
    ) -> None:
        self.random = Random(seed)
        self.nodes = tuple("abcde"[:count])
        self.now = 0
        self.faults = True
        self.letters: list[tuple[str, Send]] = []
        room = self.random.choice((90, 1 << 20))
        self.replicas = {
            node: user(node, self.nodes, self._post, quorum=quorum, unacknowledged_bytes_max=room)
            for node in self.nodes
        }
        self.arranger = Arranger(self.nodes, quorum)
        self.known = dict.fromkeys(self.nodes, 0)
        """How many arrangements each node knows."""
        self.durable: list[bytes] = []
        """By place, as it was observed."""
        self.stable = 0
        """Writers replace nothing below."""
        self.view = 0
        """The latest view of the writers."""
        self.fenced = 0
        """The latest view that was established."""
        self.stale: set[bytes] = set()
        """Batches of writers that were fenced off by then."""
        self.wiped = self.replaced = self.refused = self.trimmed = 0
        self.observed = 0
        """How many places became durable."""
        self._written = 0
        self._wiped: dict[str, int] = {}
        """The disk that each node lost last."""
        self._views = views
        for node in self.nodes:
            self._start(node)
            self._say_disk(self.replicas[node])
        self.arranger.start()

    @property
    def happened(self) -> dict[str, int]:
        """A schedule in which nothing happens shows nothing."""
        return {
            "durable": self.observed,
            "epochs": len(self.arranger.decided) - 1,
            "established views": self.fenced,
            "fenced writes": len(self.stale),
            "refused writes": self.refused,
            "replaced tails": self.replaced,
            "trimmed": self.trimmed,
            "wiped disks": self.wiped,
        }

    def run(self, steps: int) -> None:
        for _ in range(steps):
            self._advance()
            self._check()

    def heal(self) -> None:
        """From here on nothing fails, and all replicas come to hold the same."""
        self.faults = False
        for node in self.nodes:
            if not self.replicas[node].up:
                self._start(node)
        for _ in range(30_000):
            self._advance(calm=True)
            self._check()
            if self._is_calm():
                break
        else:
            raise AssertionError("the replicas never came together")
        begins = max(replica.begins for replica in self.replicas.values())
        logs = [replica.content(begins, replica.end) for replica in self.replicas.values()]
        assert all(log == logs[0] for log in logs)

    def _is_calm(self) -> bool:
        now = self.arranger.now
        lead = self.replicas[now.primary]
        end = lead.replica.log.last
        return (
            set(now.replicas) == set(self.nodes)
            and lead.leads
            and all(each.replica.epoch == now.epoch for each in self.replicas.values())
            and all(each.replica.log.last == end for each in self.replicas.values())
            and lead.replica.log.durable == end
            and not self.letters
        )

    def _advance(self, *, calm: bool = False) -> None:
        """One thing happens."""
        # Each node acts as often as in a group of three, however many there are.
        self.now += self.random.randrange(2 * MS) * 3 // len(self.nodes)
        replica = self.replicas[self.random.choice(self.nodes)]
        if not replica.up:
            if self.random.random() < 0.1:
                self._start(replica.node)
            return
        replica.pass_time(self.now)
        chance = self.random.random()
        if self.letters and chance < 0.55:
            self._deliver()
        elif replica.group is not None and chance < 0.75:
            fails = self.faults and self.random.random() < 0.1
            (replica.fail_to_write if fails else replica.write)()
        elif replica.reads and chance < 0.8:
            replica.read(fails=self.faults and self.random.random() < 0.2)
        elif chance < 0.88:
            self._arrange(replica, calm=calm)
        elif not calm:
            self._disturb(replica)

    def _arrange(self, replica: Node, *, calm: bool) -> None:
        arranger = self.arranger
        chance = self.random.random()
        if chance < 0.5:
            self._tell(replica)
        elif chance < 0.7:
            arranger.report(replica)
        elif chance < 0.8:
            self.letters += arranger.lessons()
        elif not calm or arranger.taking_over or not self._serves(arranger.now.primary):
            self.letters += arranger.seals()

    def _serves(self, node: str) -> bool:
        """It is the primary of the epoch, and knows."""
        now, replica = self.arranger.now, self.replicas[node]
        return node == now.primary and replica.leads and replica.replica.epoch == now.epoch

    def _disturb(self, replica: Node) -> None:
        chance = self.random.random()
        if chance < 0.08:
            self._crash(replica)
        elif chance < 0.13 and replica.bare:
            self._trim(replica)
        elif chance < 0.2 and replica.bare:
            replica.do(lambda: replica.replica.log.note(b"note"))
        elif replica.leads:
            self._write(replica)

    def _crash(self, replica: Node) -> None:
        replica.crash(kept=self.random.random() < 0.5)
        if self.random.random() < 0.7 and self._is_spare(replica.node):
            self._wiped[replica.node] = replica.replica.log.disk
            replica.wipe()
            self.known[replica.node] = 0
            self.wiped += 1

    def _trim(self, replica: Node) -> None:
        self.trimmed = max(self.trimmed, self.random.randint(0, len(self.durable)))
        self.stable = max(self.stable, self.trimmed)
        if replica.replica.log.last >= self.trimmed:
            replica.trim(self.trimmed)

    def _write(self, replica: Node) -> None:
        chance = self.random.random()
        if self._views and chance < 0.05:
            self._fence(replica)
        elif self._views and chance < 0.1:
            self._replace(replica)
        elif chance < 0.25:
            count = self.random.randint(1, 4)
            replica.do(lambda: replica.replica.fill(count))
        else:
            view = max(0, self.view - self.random.choice((0, 0, 0, 1)))
            batch, count = self._batch(replica)
            self._say(replica, view, [batch], lambda: replica.append((batch, count), view=view))

    def _fence(self, replica: Node) -> None:
        """By the next view, or by one that some primaries know already."""
        self.view += self.random.randint(0, 1)
        view = self.view
        self._say(replica, view, [], lambda: replica.do(lambda: replica.replica.fence(view)))

    def _replace(self, replica: Node) -> None:
        """What is stable stays; both tails may be found from here on, until one is durable."""
        log = replica.replica.log
        self.stable = max(self.stable, self.random.randint(0, len(self.durable)))
        start = log.boundary(max(self.stable, log.first))
        tail = [self._batch(replica) for _ in range(self.random.randint(0, 3))]
        view = self.view + self.random.randint(0, 1)

        def replace() -> None:
            replica.do(lambda: replica.replica.replace_tail(start, tail, view=view))
            self.replaced += 1
            if replica.node == self.arranger.now.primary:
                del self.durable[start:]

        if view >= replica.replica.view:
            self.view = view
        self._say(replica, view, [batch for batch, _ in tail], replace)

    def _say(
        self, replica: Node, view: int, batches: list[bytes], write: Callable[[], None]
    ) -> None:
        """A writer of this view writes. A view that was established before is known to every
        primary that the arranger counts on.
        """
        fenced_off = view < self.fenced
        if fenced_off:
            self.stale.update(batches)
        try:
            write()
        except StaleView:
            self.refused += 1
        else:
            assert not (fenced_off and self._serves(replica.node)), "it should have been refused"

    def _batch(self, replica: Node) -> tuple[bytes, int]:
        self._written += 1
        count = self.random.randint(1, 4)
        name = f"{replica.node}{self._written}" * self.random.choice((1, 1, 9))
        return replica.batch(name, count), count

    def _is_spare(self, node: str) -> bool:
        """Others hold everything that it holds: the primary holds everything; and without it, the
        backups that adopted its term do, if there are enough of them. A sealed replica may be the
        next primary.
        """
        now = self.arranger.now
        if self._has_lost(now.primary) or self.replicas[node].replica.role is Role.SEALED:
            return False
        others = [
            self.replicas[each]
            for each in now.replicas
            if each != node and not self._has_lost(each)
        ]
        if node == now.primary and len(others) < self.arranger.quorum.to_recover(len(now.replicas)):
            return False  # the quorum doesn't stand the loss of a primary
        complete = all(
            each.up and each.replica.epoch == now.epoch and each.replica.complete for each in others
        )
        return node != now.primary or (bool(others) and complete)

    def _has_lost(self, node: str) -> bool:
        """The disk that the epoch counts on, whether the arranger knows or not."""
        now = self.arranger.now
        counted = dict(zip(now.replicas, now.disks, strict=True)).get(node)
        return counted is not None and counted == self._wiped.get(node)

    def _deliver(self) -> None:
        """Mostly in order; some letters come twice, some are lost, and some lost their end."""
        nth = 0 if self.random.random() < 0.7 else self.random.randrange(len(self.letters))
        sender, send = self.letters[nth]
        chance = self.random.random() if self.faults else 1
        if chance > 0.05:
            del self.letters[nth]
        if 0.05 < chance < 0.12:
            return
        if send.to == ARRANGER:
            assert isinstance(send.message, Sealed)
            self.arranger.take(sender, send.message)
            return
        letter = send.message
        if isinstance(letter, Copy) and self.faults and self.random.random() < 0.05:
            kept = self.random.randint(0, len(letter.items))
            letter = msgspec.structs.replace(letter, items=letter.items[:kept])
        replica = self.replicas[send.to]
        if replica.up:
            replica.now = self.now
            replica.receive(sender, letter)

    def _tell(self, replica: Node) -> None:
        """Of the next arrangement that it doesn't know; and it says which disk it has."""
        self._say_disk(replica)
        known = self.known[replica.node]
        if known < len(self.arranger.decided):
            self.known[replica.node] += 1
            replica.arrange(self.arranger.decided[known])

    def _say_disk(self, replica: Node) -> None:
        if replica.disk.last:
            self.arranger.disks[replica.node] = replica.replica.log.disk

    def _start(self, node: str) -> None:
        """It is told again of the last arrangement that it still knows, if not of earlier ones."""
        replica = self.replicas[node]
        replica.start(self.now)
        known = self.random.randint(0, self.known[node])
        self.known[node] = 0 if replica.forgets else max(0, known - 1)

    def _check(self) -> None:
        primary = self.replicas[self.arranger.now.primary]
        if not primary.up or not self._serves(primary.node):
            return
        replica, log = primary.replica, primary.replica.log
        assert log.last >= len(self.durable)
        for place, batch in primary.content(max(primary.begins, self.trimmed), log.durable):
            if place < len(self.durable):
                assert batch == self.durable[place], place
            else:
                assert place == len(self.durable)
                assert batch not in self.stale, "its writer was fenced off"
                self.durable.append(batch)
                self.observed += 1
        if replica.primary is not None and replica.primary.established:
            assert replica.view >= self.fenced, "a view that was established is kept"
            self.fenced = replica.view

    def _post(self, sender: str, send: Send) -> None:
        self.letters.append((sender, send))
