"""The consensus of the sequencing group: one log of entries that a majority has on disk."""

from collections.abc import Callable, Sequence
from typing import Protocol

import msgspec

from anabranch.core.belfast.consensus_letters import ConsensusLetter
from anabranch.core.bolt.alarms import Alarms
from anabranch.core.errors import AnabranchError
from anabranch.core.machine import Effect
from anabranch.core.types import Milliseconds


class ConsensusTiming(msgspec.Struct, frozen=True):
    heartbeat_ms: Milliseconds = 50
    election_ms: Milliseconds = 500
    """Without a word from the leader, before another stands; without a majority, before it steps
    down.
    """


class Saved(Protocol):
    @property
    def content(self) -> bytes: ...


class Recovered(Protocol):
    """What the journal held; ports.Recovered is one."""

    @property
    def snapshot(self) -> Saved | None: ...
    @property
    def entries(self) -> Sequence[bytes]: ...
    @property
    def last(self) -> int: ...


class Consensus:
    """A part of the sequencer's machine. The owner sets its `on_...` before `begin`, and calls
    `settle` at the end of each step.
    """

    def __init__(
        self,
        node: str,
        members: Sequence[str],
        timing: ConsensusTiming,
        effects: list[Effect],
        alarms: Alarms,
    ) -> None:
        self.on_commit: Callable[[int, bytes], None]
        self.on_restore: Callable[[int, bytes], None]
        self.on_elected: Callable[[], None]
        self.on_deposed: Callable[[], None]
        self.take_image: Callable[[], bytes]
        self.node = node
        self.term = 0
        self.leader: str | None = None
        self.leads = False
        self.committed = 0

    @property
    def last(self) -> int:
        """The end of this member's log, committed or not."""
        raise NotImplementedError

    @property
    def reachable(self) -> tuple[str, ...]:
        """Members that were heard of within an election's time, this one among them."""
        raise NotImplementedError

    def recover(self, recovered: Recovered) -> None:
        """Before `begin`, what the disk held."""
        raise NotImplementedError

    def begin(self) -> None:
        raise NotImplementedError

    def propose(self, entry: bytes) -> int:
        """Only while it leads. Says the entry's index."""
        raise NotImplementedError

    def entries(self, after: int, count_max: int) -> tuple[int, list[bytes]] | None:
        """Committed ones behind this, and the first's index; None: forgotten, use the image."""
        raise NotImplementedError

    def received(self, sender: str, letter: ConsensusLetter) -> None:
        raise NotImplementedError

    def persisted(self, last: int) -> None:
        raise NotImplementedError

    def persist_failed(self, error: AnabranchError) -> None:
        raise NotImplementedError

    def snapshot_saved(self, index: int) -> None:
        raise NotImplementedError

    def linked(self, node: str) -> None:
        raise NotImplementedError

    def resign(self) -> None:
        """Hand over to the follower that has most, and never lead again."""
        raise NotImplementedError

    def settle(self) -> None:
        """End of a step: what was gathered goes to the disk and to the others."""
        raise NotImplementedError
