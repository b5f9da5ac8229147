"""What the views of a log need of the controller that they are part of."""

from typing import Any, Protocol

from anabranch.core.limits import Limits
from anabranch.core.sequencing.protocol.letters import Present
from anabranch.core.sequencing.view import View
from anabranch.core.types import Milliseconds, Nanoseconds, Position


class ViewCounters(Protocol):
    """Plain numbers that only grow."""

    attempts: int
    views: int
    lost_views: int
    stragglers: int


class ViewConfiguration(Protocol):
    """The part of a log's configuration that is about its sequencing layer."""

    @property
    def version(self) -> int: ...

    @property
    def view(self) -> View | None: ...

    @property
    def sequencers(self) -> tuple[str, ...]:
        """Nodes that may be members."""
        ...

    @property
    def lost_views(self) -> tuple[tuple[int, Milliseconds], ...]: ...


class ViewPlan(Protocol):
    """Decisions on their way to where configurations are kept."""

    @property
    def limits(self) -> Limits: ...

    @property
    def counters(self) -> ViewCounters: ...

    @property
    def term(self) -> int: ...

    @property
    def configuration(self) -> ViewConfiguration:
        """The last that is durable."""
        ...

    @property
    def busy(self) -> bool:
        """A decision is on its way: nothing else is decided meanwhile."""
        ...

    def fits(self, letter: Present) -> bool:
        """Was this node started as the log wants its members? Others aren't taken in."""
        ...

    def decide(self, **changes: Any) -> None: ...

    def note_lost_view(self, number: int, now_ms: Milliseconds) -> None: ...


class OrderedRecords(Protocol):
    """Where the log's ordered records are."""

    @property
    def ready(self) -> bool:
        """Records can be stored there."""
        ...

    def hold(self, now: Nanoseconds) -> Position | None:
        """Where a log goes on of which a view was lost; None while that isn't known."""
        ...
