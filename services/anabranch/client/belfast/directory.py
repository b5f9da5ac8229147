"""Who serves which shard, as far as the nodes have told: the latest that any of them knew.

A node that is cut off from the others doesn't know what became of it. So each time another one is
asked, by turns.
"""

from collections.abc import Callable, Sequence

from anabranch.client.session.inquiry import Inquiry
from anabranch.client.session.line import Line
from anabranch.core.belfast.ledger.ledger import Standing
from anabranch.core.belfast.protocol.messages import (
    Directory,
    Locate,
    Shard,
    ToClient,
    ToServer,
)
from anabranch.core.errors import AnabranchError, ShardAway

NodeLine = Line[ToServer, ToClient]

SERVING = (Standing.SEATED, Standing.LEAVING, Standing.WAITING)
"""Of shards whose primary answers."""

UNSEEN_MAX = 2
"""So many nodes in a row don't know a shard, though none is still to join: there is none."""


class Whereabouts:
    """Of the shards and the leader."""

    def __init__(
        self, seeds: Sequence[str], line: Callable[[str], NodeLine], told: Callable[[], None]
    ) -> None:
        """`line`: the one to a node. `told`: called when a node has said what it knows."""
        self.directory: Directory | None = None
        self.leader = ""
        self.expected = 1
        """How many shards the log should have at least. Shards join one after the other: before
        that many have, one that no node knows may be on its way.
        """
        self.hosts: dict[str, str] = {}
        """Where nodes were met last, as others have told."""
        self.line = line
        self._seeds = list(seeds)
        self._told = told
        self._shards: dict[str, Shard] = {}
        self._turn = 0
        self._inquiry: Inquiry[ToServer, ToClient] = Inquiry(Locate(), self._answered)

    @property
    def nodes(self) -> list[str]:
        """All that are known, those first that the program was told."""
        nodes = list(self._seeds)
        if self.directory is not None:
            nodes += [self.directory.leader]
            nodes += [node for shard in self.directory.shards for node in shard.replicas]
        return [node for node in dict.fromkeys(nodes) if node]

    def shard(self, name: str) -> Shard | None:
        return self._shards.get(name)

    @property
    def joining(self) -> bool:
        """Are shards still to join, as far as is known?"""
        return len(self._shards) < self.expected

    def missing(self, name: str) -> AnabranchError:
        """Why nothing can be asked of a shard that is still to join."""
        reason = f"{len(self._shards)} of {self.expected} shards have joined its log so far"
        return ShardAway(name, reason)

    def serving(self) -> list[str]:
        """Shards that have a primary which answers, in their order."""
        return [each.name for each in self._shards.values() if each.standing in SERVING]

    def taking(self) -> list[str]:
        """Shards that take appends now, in their order."""
        return [
            each.name
            for each in self._shards.values()
            if each.standing is Standing.SEATED and each.primary
        ]

    def failed(self, name: str) -> bool:
        shard = self._shards.get(name)
        return shard is not None and shard.standing is Standing.FAILED

    def serves(self, name: str) -> str:
        """The node that serves this shard's subscribers; empty if none is known."""
        shard = self._shards.get(name)
        if shard is None:
            return ""
        if shard.standing is not Standing.FAILED:
            return shard.primary
        stand_in = self._shards.get(shard.stand_in)
        return shard.stand_in if stand_in is None else stand_in.primary

    def any(self) -> str:
        """The next node, by turns."""
        nodes = self.nodes
        self._turn += 1
        return nodes[(self._turn - 1) % len(nodes)]

    def ask_another(self) -> None:
        """Whoever hasn't answered by now isn't waited for."""
        self._inquiry.ask(self.line(self.any()))

    def ask(self) -> None:
        """Another node, unless one is being asked."""
        if not self._inquiry.under_way:
            self.ask_another()

    def learn(self, told: Directory) -> None:
        known = self.directory
        self.hosts |= told.hosts
        if known is None or told.index >= known.index:
            self.directory = told
            self.leader = told.leader or self.leader
            self._shards = {shard.name: shard for shard in told.shards}
        self._told()

    def _answered(self, message: ToClient) -> None:
        if isinstance(message, Directory):
            self.learn(message)
