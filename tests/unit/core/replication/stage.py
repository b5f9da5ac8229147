"""Replicas of one log on a network without faults; disks write when a test tells them to."""

from tests.unit.core.replication.replica import ARRANGER, Arrangement, Learn, Node, Seal

from anabranch.core.machine import Send
from anabranch.core.quorum import MAJORITY, Quorum
from anabranch.core.replication.entries import Item
from anabranch.core.replication.primary import Primary
from anabranch.core.types import MS

ABC = ("a", "b", "c")


class Stage:
    def __init__(self, *nodes: str, quorum: Quorum = MAJORITY, cache_bytes: int = 1 << 20) -> None:
        self.letters: list[tuple[str, Send]] = []
        self.said: list[object] = []
        """To the arranger."""
        self.replicas = {
            node: Node(node, nodes, self._post, quorum=quorum, cache_bytes=cache_bytes)
            for node in nodes
        }
        self.now = 0
        for replica in self.replicas.values():
            replica.start(0)

    def __getitem__(self, node: str) -> Node:
        return self.replicas[node]

    def arrange(
        self, epoch: int, primary: str, *replicas: str, disks: tuple[int, ...] = (), begins: int = 0
    ) -> None:
        for replica in self.replicas.values():
            if replica.up:
                replica.arrange(Arrangement(epoch, primary, replicas, disks, begins))

    def disks(self, *nodes: str) -> tuple[int, ...]:
        return tuple(self[node].replica.log.disk for node in nodes)

    def seal(self, node: str, epoch: int) -> None:
        self[node].receive(ARRANGER, Seal(epoch))

    def learn(self, node: str, epoch: int, primary: str) -> None:
        self[node].receive(ARRANGER, Learn(epoch, primary))

    def primary(self, node: str) -> Primary:
        primary = self[node].replica.primary
        assert primary is not None
        return primary

    def restart(self, node: str) -> None:
        """What was being written is lost."""
        self[node].crash(kept=False)
        self[node].start(self.now)

    def wipe(self, node: str) -> None:
        """It crashes, and is back with an empty disk."""
        self[node].crash(kept=False)
        self[node].wipe()
        self.now += MS
        self[node].start(self.now)

    def deliver(self) -> None:
        while self.letters:
            sender, send = self.letters.pop(0)
            replica = self.replicas.get(send.to)
            if replica is None:
                self.said.append(send.message)
            elif replica.up:
                replica.receive(sender, send.message)

    def settle(self, *nodes: str) -> None:
        """Disks write, and letters arrive, until there is nothing left to do."""
        self.deliver()
        while writers := [node for node in nodes or self.replicas if self._writes(node)]:
            for node in writers:
                if self._writes(node):
                    self[node].write()
            self.deliver()

    def wait(self, span: int) -> None:
        """In small steps, settled after each."""
        for _ in range(span // MS):
            self.now += MS
            for replica in self.replicas.values():
                if replica.up:
                    replica.pass_time(self.now)
            self.settle()

    def append(self, node: str, *batches: bytes, view: int = 0) -> None:
        self[node].append(*((batch, 1) for batch in batches), view=view)

    def fetched(self, node: str, low: int, high: int, bytes_max: int = 1 << 20) -> list[list[Item]]:
        """Fills up when the journal is read."""
        found: list[list[Item]] = []
        replica = self[node]
        replica.do(lambda: replica.replica.log.fetch(low, high, bytes_max, found.append))
        return found

    def _writes(self, node: str) -> bool:
        return self[node].up and self[node].group is not None

    def _post(self, sender: str, send: Send) -> None:
        self.letters.append((sender, send))


def led(*nodes: str, quorum: Quorum = MAJORITY, cache_bytes: int = 1 << 20) -> Stage:
    """Replicas in their first epoch, with `a` as the primary."""
    stage = Stage(*nodes, quorum=quorum, cache_bytes=cache_bytes)
    stage.arrange(1, "a", *nodes)
    stage.settle()
    return stage
