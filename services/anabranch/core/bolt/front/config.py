"""What the machines of a lazy front are given when they start."""

from dataclasses import dataclass

from anabranch.core.limits import MIB
from anabranch.core.sequencing.config import SequencingConfig
from anabranch.core.types import LogId, Milliseconds


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitBounds:
    """How much the leader puts into one batch, and how much it has under way."""

    batch_bytes: int = MIB
    """A batch is full when it has so many bytes; one more append may exceed that."""
    batch_appends: int = 4_096
    """Or when it has so many appends."""
    eager_batches: int = 8
    """A batch that isn't full is cut while fewer than this are under way: a PUT takes long, and
    others can begin beside it.
    """
    batches_max: int = 64
    """Batches under way at a time. With `batch_appends` this bounds the ids that the log keeps."""
    bytes_max: int = 32 * MIB
    """Bytes of all batches under way, past which nothing is cut."""


COMMIT_BOUNDS = CommitBounds()
RETRY_MS: Milliseconds = 200
"""The pause before what the log refused for now is asked again."""
SILENT_MS: Milliseconds = 15_000
"""Without an answer for so long, a question is taken for lost and repeated."""
LOOK_MS: Milliseconds = 1_000
"""How often the controller looks whether the front is to end."""
REPORT_MS: Milliseconds = 1_000
"""How often a controller that has a process of its own tells the sequencers what it does, though
nothing has changed.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class FrontSequencerConfig:
    node: str
    """The address at which this sequencer is dialed: its name."""
    log: LogId
    controllers: tuple[str, ...]
    fsync: bool = True
    bounds: CommitBounds = COMMIT_BOUNDS
    hands_over: bool = False
    """Its process may end alone: the front first goes on without it."""

    @property
    def replica(self) -> SequencingConfig:
        return SequencingConfig(node=self.node, controllers=self.controllers, fsync=self.fsync)


@dataclass(frozen=True, slots=True, kw_only=True)
class FrontControllerConfig:
    node: str
    log: LogId
    sequencers: tuple[str, ...]
    """All nodes that may be members of a view, the same order everywhere."""
    controllers: tuple[str, ...] = ()
    """All controllers of the front, this one among them, the same order everywhere; empty: this is
    the only one.
    """
    accept_loss: bool = False
    """With durability `memory`: go on with empty rings when nothing of a view is left."""

    def __post_init__(self) -> None:
        assert self.sequencers, "a view has members"
        assert len(set(self.sequencers)) == len(self.sequencers)
