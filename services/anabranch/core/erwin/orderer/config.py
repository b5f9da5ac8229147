"""What a sequencer of an Erwin log is given when it starts."""

from dataclasses import dataclass

from anabranch.core.erwin.orderer.row_groups import PUSH_BOUNDS, PushBounds
from anabranch.core.erwin.protocol.rows import Mode
from anabranch.core.sequencing.config import SequencingConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class SequencerConfig:
    node: str
    """The address at which this sequencer is dialed: its name."""
    controllers: tuple[str, ...]
    mode: Mode = Mode.M
    """As the controllers' configuration says."""
    fsync: bool = True
    hands_over: bool = False
    """A process of its own: when it is told to end, the log goes on without it first."""
    bounds: PushBounds = PUSH_BOUNDS

    @property
    def replica(self) -> SequencingConfig:
        return SequencingConfig(
            node=self.node,
            controllers=self.controllers,
            fsync=self.fsync,
            data_on_shards=self.mode is Mode.ST,
        )
