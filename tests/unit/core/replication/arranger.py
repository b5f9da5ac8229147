"""Who decides the epochs of one replicated log, as the leader of Belfast's sequencers does."""

from tests.unit.core.replication.replica import (
    ARRANGER,
    Arrangement,
    Learn,
    Node,
    Seal,
    Sealed,
)

from anabranch.core.machine import Send
from anabranch.core.quorum import Quorum


class Arranger:
    """A silent primary's epoch is sealed. Of the replicas that were sealed, the one with the
    highest term and the longest log is the next primary, with the others as its backups. It takes
    so many that every quorum has one of them, or the old primary itself. As long as the primary
    answers, its word decides which replicas are left out and which are taken in.
    """

    def __init__(self, nodes: tuple[str, ...], quorum: Quorum) -> None:
        self.nodes = nodes
        self.disks = dict.fromkeys(nodes, 0)
        """As the nodes say themselves."""
        self.decided: list[Arrangement] = []
        self.sealed: dict[str, Sealed] = {}
        self.taking_over = False
        self.quorum = quorum

    @property
    def now(self) -> Arrangement:
        return self.decided[-1]

    def start(self) -> None:
        disks = tuple(self.disks.values())
        self.decided.append(Arrangement(1, self.nodes[0], self.nodes, disks))

    def lost(self, node: str) -> bool:
        """It has another disk than the one that is counted on."""
        replicas = self.now.replicas
        return node in replicas and self.now.disks[replicas.index(node)] != self.disks[node]

    def arrange(self, primary: str, replicas: tuple[str, ...]) -> None:
        known = dict(zip(self.now.replicas, self.now.disks, strict=True))
        disks = tuple(
            known[node]
            if node in known and (node == primary or not self.lost(node))
            else self.disks[node]
            for node in replicas
        )
        self.decided.append(Arrangement(self.now.epoch + 1, primary, replicas, disks))
        self.sealed = {}
        self.taking_over = False

    def seals(self) -> list[tuple[str, Send]]:
        """A takeover that has begun is finished: sealed replicas serve the epoch no more."""
        self.taking_over = True
        seal = Seal(self.now.epoch + 1)
        return [(ARRANGER, Send(node, seal)) for node in self.now.replicas]

    def take(self, sender: str, letter: Sealed) -> None:
        replicas = self.now.replicas
        if letter.epoch != self.now.epoch + 1 or sender not in replicas:
            return
        self.sealed[sender] = letter
        self.sealed = {node: it for node, it in self.sealed.items() if not self.lost(node)}
        recovers = self.quorum.to_recover(len(replicas))
        needed = 1 if self.now.primary in self.sealed else recovers
        if len(self.sealed) < needed:
            return
        best = max(self.sealed, key=lambda node: (*self._rank(node), node))
        self.arrange(best, self._enough(tuple(node for node in replicas if node in self.sealed)))

    def report(self, node: Node) -> None:
        """A primary says which replicas are silent, and which have caught up."""
        now, primary = self.now, node.replica.primary
        if self.taking_over or primary is None:
            return
        if (node.replica.epoch, node.node) != (now.epoch, now.primary):
            return
        lost = [each for each in now.replicas if self.lost(each) and each != now.primary]
        stay = tuple(each for each in now.replicas if each not in (*primary.silent, *lost))
        back = [each for each in primary.caught_up if each not in stay]
        wanted = self._enough((*stay, *back))
        if wanted != now.replicas or any(map(self.lost, wanted)):
            self.arrange(now.primary, wanted)

    def lessons(self) -> list[tuple[str, Send]]:
        """For the nodes that the epoch goes on without."""
        learn = Learn(self.now.epoch, self.now.primary)
        spare = [node for node in self.nodes if node not in self.now.replicas]
        return [(ARRANGER, Send(node, learn)) for node in spare]

    def _enough(self, chosen: tuple[str, ...]) -> tuple[str, ...]:
        """With more replicas of the epoch, where these are fewer than a quorum: a replica that is
        not there, or lost its disk, may come back, and begins with what its primary has.
        """
        for node in self.now.replicas:
            if self.quorum.size(len(chosen)) > len(chosen) and node not in chosen:
                chosen = (*chosen, node)
        return chosen

    def _rank(self, node: str) -> tuple[int, int]:
        return self.sealed[node].last_term, self.sealed[node].last
