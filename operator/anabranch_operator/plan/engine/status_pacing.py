"""The pace of status writes that change nothing but counters, such as a log's tail.

A thousand forks move with every append to their parent. Each such status is written at most once
every `cosmetic_ms`, and all of them together at most `cosmetic_per_s` times a second.
"""

from anabranch_operator.api.anabranch_names import MS, Nanoseconds
from anabranch_operator.plan.engine.actions import Action, ApplyStatus
from anabranch_operator.plan.engine.object_state import ObjectState


class StatusPacer:
    """Gives each object a time of its own for its next counters-only write."""

    def __init__(self, *, object_ms: int, writes_per_s: int) -> None:
        self._pause = object_ms * MS
        self._gap = 1_000 * MS // writes_per_s
        self._free_at: Nanoseconds = 0
        """The earliest time that isn't reserved yet."""

    def restart(self, now: Nanoseconds) -> None:
        self._free_at = now

    def admit(
        self, state: ObjectState, due: tuple[Action, ...], now: Nanoseconds
    ) -> tuple[Action, ...]:
        """The actions to perform now. `state.deferred_until` says when a deferred one is due."""
        state.deferred_until = None
        if not any(map(_is_cosmetic, due)):
            return due
        at = state.written_at + self._pause
        if at <= now:
            at = self._reserve(state, now)
        if at <= now:
            state.turn_at = None
            return due
        state.deferred_until = at
        return tuple(action for action in due if not _is_cosmetic(action))

    def _reserve(self, state: ObjectState, now: Nanoseconds) -> Nanoseconds:
        """If all objects came back for the next free time, all but one would be planned in vain."""
        if state.turn_at is None:
            state.turn_at = max(self._free_at, now)
            self._free_at = state.turn_at + self._gap
        return state.turn_at


def _is_cosmetic(action: Action) -> bool:
    return isinstance(action, ApplyStatus) and action.cosmetic
