"""Who orders the log and who serves its shards, as far as the nodes have told: the latest
configuration that any of them knew.
"""

from collections.abc import Callable, Sequence

from anabranch.client.erwin.dialect import FromNode, NodeLine, ToNode
from anabranch.client.session.commons import Commons
from anabranch.client.session.inquiry import Inquiry
from anabranch.core.sequencing.protocol.messages import Directory, Locate, Shard


class Whereabouts:
    """Of the members of the view, and of the shards."""

    def __init__(
        self,
        seeds: Sequence[str],
        sequencer: Callable[[str], NodeLine],
        shard: Callable[[str], NodeLine],
        located: Callable[[], None],
    ) -> None:
        """`seeds`: sequencing replicas that the program was told. `sequencer`, `shard`: the line to
        such a node. `located`: called when a node has said what it knows.
        """
        assert seeds, "somebody is asked first"
        self.directory: Directory | None = None
        self.hosts: dict[str, str] = {}
        """Where nodes were met last, as others have told."""
        self.sequencer, self.shard_line = sequencer, shard
        self.lost_view = 0
        """The last view whose unordered records were lost."""
        self._seeds = list(seeds)
        self._located = located
        self._shards: dict[str, Shard] = {}
        self._turn = 0
        self._inquiry: Inquiry[ToNode, FromNode] = Inquiry(Locate(), self._answered)

    @property
    def view(self) -> int:
        """The latest that is known; 0: none."""
        return 0 if self.directory is None else self.directory.view

    @property
    def mode(self) -> str:
        return "" if self.directory is None else self.directory.mode

    @property
    def leader(self) -> str:
        return "" if self.directory is None else self.directory.leader

    @property
    def members(self) -> tuple[NodeLine, ...]:
        """Lines to all members of the view; none if no view is known."""
        if self.directory is None:
            return ()
        return tuple(map(self.sequencer, self.directory.members))

    @property
    def shards(self) -> list[Shard]:
        """In the order of the configuration."""
        return list(self._shards.values())

    def shard(self, name: str) -> Shard | None:
        return self._shards.get(name)

    def epoch(self, shard: str) -> int:
        """Of a shard's replicas, as it is known; 0 if it isn't."""
        known = self._shards.get(shard)
        return 0 if known is None else known.epoch

    def taking(self) -> list[str]:
        """Shards that take new records, in the order of their names."""
        return sorted(each.name for each in self._shards.values() if each.open and each.primary)

    def replicas(self, shard: str) -> tuple[NodeLine, ...]:
        """Lines to all replicas of a shard; none if it isn't known."""
        known = self._shards.get(shard)
        return () if known is None else tuple(map(self.shard_line, known.replicas))

    def removed(self, shard: str) -> bool:
        """Did the log have this shard, and has it no more?"""
        return self.directory is not None and shard in self.directory.removed

    def any_sequencer(self) -> str:
        """The next sequencing replica, by turns."""
        return self._next(self._sequencers)

    def any_of(self, shard: str) -> str:
        """The next replica of a shard, by turns; empty if the shard isn't known."""
        known = self._shards.get(shard)
        return "" if known is None or not known.replicas else self._next(list(known.replicas))

    def ask_another(self) -> None:
        """Whoever hasn't answered by now isn't waited for."""
        nodes = self._sequencers
        serving = {node for shard in self._shards.values() for node in shard.replicas}
        node = self._next([*nodes, *sorted(serving)])
        self._inquiry.ask(self.shard_line(node) if node in serving else self.sequencer(node))

    def ask(self) -> None:
        """Another node, unless one is being asked."""
        if not self._inquiry.under_way:
            self.ask_another()

    def learn(self, told: Directory) -> None:
        known = self.directory
        self.hosts |= told.hosts
        self.lost_view = max(self.lost_view, told.lost_view)
        # A node may know less than others, and a configuration has one content for each number.
        if known is None or told.version >= known.version:
            self.directory = told
            self._shards = {shard.name: shard for shard in told.shards}
        self._located()

    @property
    def _sequencers(self) -> list[str]:
        """All that are known, those first that the program was told."""
        members = () if self.directory is None else self.directory.members
        return list(dict.fromkeys((*self._seeds, *members)))

    def _next(self, nodes: Sequence[str]) -> str:
        self._turn += 1
        return nodes[(self._turn - 1) % len(nodes)]

    def _answered(self, message: FromNode) -> None:
        if isinstance(message, Directory):
            self.learn(message)


ErwinCommons = Commons[ToNode, FromNode, Whereabouts]
