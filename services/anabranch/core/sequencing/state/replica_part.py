"""What an orderer of any engine needs of the sequencing replica beside it."""

from collections.abc import Callable, Sequence
from typing import Protocol

from anabranch.core.sequencing.protocol.ids import AppendId
from anabranch.core.sequencing.state.ring import Entry, Ring
from anabranch.core.sequencing.view import View
from anabranch.core.types import Position


class SequencingPart(Protocol):
    """`replica.py` says what these are."""

    on_started: Callable[[View], None]
    on_ended: Callable[[], None]
    on_stable: Callable[[Position], None]

    @property
    def view(self) -> View | None: ...

    @property
    def ring(self) -> Ring: ...

    @property
    def leads(self) -> bool: ...

    @property
    def begun(self) -> int: ...

    @property
    def ordered(self) -> Position: ...

    @property
    def stable(self) -> Position: ...

    def take(self, *, bytes_max: int, count_max: int) -> list[Entry]: ...

    def bound_uncounted(self, size: int) -> None: ...

    def order(
        self, ids: Sequence[AppendId], positions: Sequence[Position], upto: Position
    ) -> None: ...
