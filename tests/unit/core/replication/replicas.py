"""A shard's replicas under faults, and somebody who arranges them as the sequencers' leader would.

What was durable once is written down: whoever may be primary has it from then on, unchanged.
"""

from random import Random

from tests.unit.core.replication.replica import Replica

from anabranch.core.belfast.protocol.letters import Learn, Seal, Sealed
from anabranch.core.machine import Send
from anabranch.core.replication.replica import Role
from anabranch.core.types import MS

Arrangement = tuple[int, str, tuple[str, ...], tuple[int, ...]]


class Arranger:
    """The ledger of one shard, and what its leader does about replicas.

    A silent primary's epoch is sealed; of those sealed the one with most is the next primary, with
    the others. It takes so many that one of them is of each majority, or the old primary itself.
    The primary's word decides who is left out, and who is taken in.
    """

    def __init__(self, nodes: tuple[str, ...]) -> None:
        self.nodes = nodes
        self.disks = dict.fromkeys(nodes, 0)
        """As they say themselves."""
        self.decided: list[Arrangement] = []
        self.sealed: dict[str, Sealed] = {}
        self.taking_over = False

    @property
    def now(self) -> Arrangement:
        return self.decided[-1]

    def begin(self) -> None:
        self.decided.append((1, self.nodes[0], self.nodes, tuple(self.disks.values())))

    def lost(self, node: str) -> bool:
        """It has another disk than the one that is counted on."""
        _, _, replicas, disks = self.now
        return node in replicas and disks[replicas.index(node)] != self.disks[node]

    def arrange(self, primary: str, replicas: tuple[str, ...]) -> None:
        epoch, _, before, counted = self.now
        known = dict(zip(before, counted, strict=True))
        disks = tuple(
            known[node]
            if node in known and (node == primary or not self.lost(node))
            else self.disks[node]
            for node in replicas
        )
        self.decided.append((epoch + 1, primary, replicas, disks))
        self.sealed = {}
        self.taking_over = False

    def seals(self) -> list[Send]:
        """Once this is begun it is ended: nobody hears the old primary any more."""
        self.taking_over = True
        epoch, _, replicas, _ = self.now
        return [Send(node, Seal(0, epoch + 1)) for node in replicas]

    def take(self, sender: str, letter: Sealed) -> None:
        epoch, primary, replicas, _ = self.now
        if letter.epoch != epoch + 1 or sender not in replicas:
            return
        self.sealed[sender] = letter
        self.sealed = {node: it for node, it in self.sealed.items() if not self.lost(node)}
        majority = len(replicas) // 2 + 1
        needed = 1 if primary in self.sealed else len(replicas) - majority + 1
        if len(self.sealed) < needed:
            return
        best = max(self.sealed, key=lambda node: (*self._rank(node), node))
        self.arrange(best, tuple(node for node in replicas if node in self.sealed))

    def hear(self, primary: Replica) -> None:
        """A report."""
        epoch, node, replicas, _ = self.now
        copies = primary.copies
        if self.taking_over or (copies.epoch, primary.node) != (epoch, node):
            return
        gone = (*copies.silent, *(each for each in replicas if self.lost(each) and each != node))
        stay = tuple(each for each in replicas if each not in gone)
        wanted = (*stay, *(each for each in copies.caught_up if each not in stay))
        if wanted != replicas:
            self.arrange(node, wanted)

    def lessons(self) -> list[Send]:
        epoch, primary, replicas, _ = self.now
        learn = Learn(0, epoch, primary)
        return [Send(node, learn) for node in self.nodes if node not in replicas]

    def _rank(self, node: str) -> tuple[int, int]:
        return self.sealed[node].last_epoch, self.sealed[node].last


class World:
    def __init__(self, seed: int, count: int, *, faults: bool = True) -> None:
        self.random = Random(seed)
        self.nodes = tuple("abc"[:count])
        self.now = 0
        self.faults = faults
        self.letters: list[tuple[str, Send]] = []
        self.replicas = {
            node: Replica(
                node, self.nodes, self._post, copy_bytes_max=self.random.choice((90, 1 << 20))
            )
            for node in self.nodes
        }
        self.arranger = Arranger(self.nodes)
        self.known = dict.fromkeys(self.nodes, 0)
        self.durable: list[bytes] = []
        self.wiped = 0
        self.trimmed = 0
        self.written = 0
        for node in self.nodes:
            self._start(node)
            self.replicas[node].settle()
            self._say(self.replicas[node])
        self.arranger.begin()

    def run(self, steps: int) -> None:
        for _ in range(steps):
            self._one()
            self._look()

    def heal(self) -> None:
        """From here on nothing fails: all come together, and have the same."""
        self.faults = False
        for node in self.nodes:
            if not self.replicas[node].up:
                self._start(node)
        for _ in range(4_000):
            self._one(calm=True)
            self._look()
            if self._calm():
                return
        raise AssertionError("they never came together")

    def _calm(self) -> bool:
        epoch, primary, replicas, _ = self.arranger.now
        lead = self.replicas[primary]
        return (
            set(replicas) == set(self.nodes)
            and lead.leads
            and all(self.replicas[node].copies.epoch == epoch for node in self.nodes)
            and all(self.replicas[node].copies.last == lead.copies.last for node in self.nodes)
            and lead.copies.durable == lead.copies.last
            and not self.letters
        )

    def _one(self, *, calm: bool = False) -> None:
        """Something that may happen."""
        self.now += self.random.randrange(2 * MS)
        node = self.random.choice(self.nodes)
        replica = self.replicas[node]
        if not replica.up:
            if self.random.random() < 0.1:
                self._start(node)
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
            self._rule(replica, calm=calm)
        elif not calm:
            self._disturb(replica)

    def _rule(self, replica: Replica, *, calm: bool) -> None:
        arranger = self.arranger
        chance = self.random.random()
        if chance < 0.5:
            self._tell(replica)
        elif chance < 0.7:
            if replica.leads:
                arranger.hear(replica)
        elif chance < 0.8:
            self.letters += [("s", lesson) for lesson in arranger.lessons()]
        elif not calm or arranger.taking_over or not self._reigns(self.replicas[arranger.now[1]]):
            self.letters += [("s", seal) for seal in arranger.seals()]

    def _reigns(self, replica: Replica) -> bool:
        return replica.leads and replica.copies.epoch == self.arranger.now[0]

    def _disturb(self, replica: Replica) -> None:
        chance = self.random.random()
        if chance < 0.08 and self.faults:
            replica.fall(kept=self.random.random() < 0.5)
            if self.random.random() < 0.7 and self._is_spare(replica.node):
                replica.wipe()
                self.known[replica.node] = 0
                self.wiped += 1
        elif chance < 0.13:
            self.trimmed = max(self.trimmed, self.random.randint(0, len(self.durable)))
            if replica.copies.last >= self.trimmed:
                replica.trim(self.trimmed)
        elif chance < 0.2:
            replica.do(lambda: replica.copies.note(b"note"))
        elif replica.leads:
            self.written += 1
            count = self.random.randint(1, 4)
            batch = f"{replica.node}{self.written}".encode() * self.random.choice((1, 1, 9))
            if self.random.random() < 0.2:
                replica.do(lambda: replica.copies.fill(count))
            else:
                replica.do(lambda: replica.copies.append(batch, count))

    def _is_spare(self, node: str) -> bool:
        """Do others hold all that it does? The primary holds everything, and without it, those do
        who have adopted its reign. Who is sealed may be the next.
        """
        epoch, primary, replicas, _ = self.arranger.now
        if self.arranger.lost(primary) or self.replicas[node].copies.role is Role.SEALED:
            return False
        others = [self.replicas[each] for each in replicas if each != node]
        complete = all(
            each.up and each.copies.epoch == epoch and each.copies.complete for each in others
        )
        return node != primary or (bool(others) and complete)

    def _deliver(self) -> None:
        nth = 0 if self.random.random() < 0.7 else self.random.randrange(len(self.letters))
        sender, send = self.letters[nth]
        chance = self.random.random() if self.faults else 1
        if chance > 0.05:
            del self.letters[nth]
        if 0.05 < chance < 0.12:
            return
        if send.to == "s":
            assert isinstance(send.message, Sealed)
            self.arranger.take(sender, send.message)
            return
        replica = self.replicas[send.to]
        if not replica.up:
            return
        replica.now = self.now
        copies, letter = replica.copies, send.message
        match letter:
            case Seal():
                replica.do(lambda: copies.seal(sender, letter))
            case Learn():
                replica.do(lambda: copies.learn(letter))
            case _:
                replica.do(lambda: copies.received(sender, letter))

    def _tell(self, replica: Replica) -> None:
        """The next decision that it doesn't know; and it tells which disk it has."""
        self._say(replica)
        known = self.known[replica.node]
        if known < len(self.arranger.decided):
            self.known[replica.node] += 1
            epoch, primary, replicas, disks = self.arranger.decided[known]
            node = replica.node
            replica.do(lambda: replica.copies.arrange(epoch, primary, replicas, node, disks))

    def _say(self, replica: Replica) -> None:
        if replica.disk.last:
            self.arranger.disks[replica.node] = replica.copies.disk

    def _start(self, node: str) -> None:
        """It is told again of the last decision that it still knows, if not of earlier ones."""
        self.replicas[node].start(self.now)
        self.known[node] = max(0, self.random.randint(0, self.known[node]) - 1)

    def _look(self) -> None:
        for replica in self.replicas.values():
            if replica.leads and replica.copies.epoch == self.arranger.now[0]:
                self._look_at(replica)

    def _look_at(self, primary: Replica) -> None:
        durable = len(self.durable)
        assert primary.copies.last >= durable
        low = max(primary.begins, self.trimmed)
        for place, batch in primary.content(low, primary.copies.durable):
            if place < durable:
                assert batch == self.durable[place], place
            else:
                assert place == len(self.durable)
                self.durable.append(batch)

    def _post(self, sender: str, send: Send) -> None:
        self.letters.append((sender, send))
