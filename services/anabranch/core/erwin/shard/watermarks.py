"""What of a shard's positions is final, and what is trimmed."""

from dataclasses import dataclass

from anabranch.core.types import Position


@dataclass(slots=True)
class Watermarks:
    stable: Position = 0
    """Everything below is final, and may be read (LazyLog, 4.3). As far as this replica knows."""
    trimmed: Position = 0
    """Everything below is gone."""

    def advance(self, stable: Position, trimmed: Position) -> None:
        """Neither ever falls. A trim is of what was stable."""
        self.trimmed = max(self.trimmed, trimmed)
        self.stable = max(self.stable, stable, self.trimmed)
        assert self.trimmed <= self.stable
