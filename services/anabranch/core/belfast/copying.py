"""The replicas of a shard: one log, in the journals of a majority (ADR 0028)."""

from collections.abc import Callable, Sequence
from enum import IntEnum

from anabranch.core.belfast.config import ShardConfig
from anabranch.core.belfast.copyletters import CopyLetter
from anabranch.core.belfast.letters import Learn, Seal
from anabranch.core.belfast.locallog import Item
from anabranch.core.belfast.windows import LocalSequence
from anabranch.core.bolt.alarms import Alarms
from anabranch.core.errors import AnabranchError
from anabranch.core.limits import Limits
from anabranch.core.machine import Effect, EntriesRead, ReadFailed
from anabranch.core.types import MS, Nanoseconds


class Role(IntEnum):
    IDLE = 0
    """Of no epoch that is known, and nobody's learner."""
    PRIMARY = 1
    BACKUP = 2
    LEARNER = 3
    """Outside of the epoch; it copies."""
    SEALED = 4
    """It waits for an epoch that isn't below its seal."""


class Copies:
    """One replica's share in its shard's log. A part of the Shard machine: the only one that
    persists. The owner sets the callbacks before `recover`.
    """

    def __init__(
        self, config: ShardConfig, limits: Limits, effects: list[Effect], alarms: Alarms
    ) -> None:
        self._config = config
        self._limits = limits
        self._effects = effects
        self._alarms = alarms
        self.patience: Nanoseconds = 200 * MS
        """So long a replica may owe an answer; the owner sets it by the rules."""
        self.role = Role.IDLE
        self.epoch = 0
        self.primary = ""
        """Of the epoch; this node is it, or copies from it."""
        self.first: LocalSequence = 0
        self.last: LocalSequence = 0
        self.durable: LocalSequence = 0
        """At the primary, the end of what a majority is known to hold; elsewhere, of what the
        primary said so. Of an earlier life's nothing is known: it begins at `first` then."""
        self.obstacle: str | None = None
        """Why nothing can be journaled: the primary is to take no appends. It is tried again."""
        self.silent: tuple[str, ...] = ()
        self.caught_up: tuple[str, ...] = ()
        self.on_logged: Callable[[Item], None] = lambda item: None
        self.on_note: Callable[[bytes], None] = lambda note: None
        self.on_cut_back: Callable[[LocalSequence], None] = lambda to: None
        self.on_skipped: Callable[[LocalSequence], None] = lambda to: None
        """The log was begun anew here: all below is trimmed, and this replica never had it."""
        self.on_durable: Callable[[], None] = lambda: None
        self.on_role: Callable[[], None] = lambda: None
        """The role or the epoch is another."""

    @property
    def unstored_bytes(self) -> int:
        """Of what waits for the journal: the owner bounds it."""
        return 0

    def recover(self, snapshot: bytes | None) -> bytes | None:
        """Says the owner's image, the one of `trim`. Then come the entries after it: items and
        notes that an owner's image may hold already."""
        raise NotImplementedError

    def replayed(self, index: int, entry: bytes) -> None:
        raise NotImplementedError

    def begin(self) -> None:
        """All that the journal held was replayed. The role is IDLE, or SEALED, until `arrange`."""
        raise NotImplementedError

    def append(self, batch: bytes, count: int) -> LocalSequence:
        """Says its first place. The primary's alone."""
        raise NotImplementedError

    def fill(self, count: int) -> LocalSequence:
        """No-ops, as one item. The primary's alone."""
        raise NotImplementedError

    def note(self, note: bytes) -> None:
        """Journaled in order with the items, given to no other replica."""
        raise NotImplementedError

    def arrange(self, epoch: int, primary: str, replicas: Sequence[str], node: str) -> None:
        """The ledger says so; what is known already, and what is older, changes nothing."""
        raise NotImplementedError

    def seal(self, sender: str, letter: Seal) -> None:
        """Answered with `Sealed` once the seal is journaled. One that hasn't yet copied from the
        primary of epoch `letter.epoch - 1` to where that one began doesn't answer: it can't know
        that it holds what was durable."""
        raise NotImplementedError

    def learn(self, letter: Learn) -> None:
        raise NotImplementedError

    def cut_back(self, to: LocalSequence) -> None:
        """Void what lies beyond, which nobody was told of. The primary's alone: the others
        follow it."""
        raise NotImplementedError

    def trim(self, below: LocalSequence, image: bytes) -> None:
        """Forget the items that end at or below; the owner's image is of now."""
        raise NotImplementedError

    def items(self, low: LocalSequence, high: LocalSequence) -> list[Item] | None:
        """From the one that holds `low` on, to the one that holds what is before `high`; from
        memory. None: they aren't all there, `fetch` them."""
        raise NotImplementedError

    def fetch(
        self,
        low: LocalSequence,
        high: LocalSequence,
        bytes_max: int,
        then: Callable[[list[Item]], None],
    ) -> None:
        """The same from the journal, in a later step: as many from `low` on as have so many bytes,
        at least one. None if by then they aren't in the log any more. What fails is read again.
        """
        raise NotImplementedError

    def received(self, sender: str, letter: CopyLetter) -> bool:
        """Says whether it was taken: of this shard, of an epoch that isn't over."""
        raise NotImplementedError

    def persisted(self, last: int) -> None:
        raise NotImplementedError

    def persist_failed(self, error: AnabranchError) -> None:
        raise NotImplementedError

    def entries_read(self, event: EntriesRead | ReadFailed) -> None:
        raise NotImplementedError

    def linked(self, node: str) -> None:
        raise NotImplementedError

    def settle(self) -> None:
        """The end of a step: what came together in it is journaled as one group and sent as one
        letter."""
        raise NotImplementedError
