"""Actions that failed, and when they are tried again."""

from collections.abc import Iterable, Iterator

from msgspec import Struct

from anabranch_operator.api.anabranch_names import MS, Nanoseconds
from anabranch_operator.plan.engine.actions import Act, Action
from anabranch_operator.plan.engine.events import Refusal

BACKOFF_MS, BACKOFF_MS_MAX = 1_000, 300_000
NO_EFFECT = "no-effect"
"""The code of an action that succeeded, and is wanted again although nothing has changed."""

Key = tuple[str, ...]


def key_of(action: Act) -> Key:
    """What is done, and to what: two actions with the same key are the same thing tried again."""
    return (type(action).__name__, *action.target)


class Trouble(Struct, frozen=True):
    """One action that failed."""

    action: Action
    refusal: Refusal
    since: Nanoseconds
    retry_at: Nanoseconds
    failures: int


class Troubles:
    """The failed actions of one object."""

    def __init__(self) -> None:
        self._held: dict[Key, Trouble] = {}

    def __iter__(self) -> Iterator[Trouble]:
        return iter(self._held.values())

    def __bool__(self) -> bool:
        return bool(self._held)

    def note(self, action: Action, refusal: Refusal, now: Nanoseconds) -> Trouble:
        before = self._held.get(key_of(action))
        failures = 1 if before is None else before.failures + 1
        pause_ms = min(BACKOFF_MS << min(failures - 1, 16), BACKOFF_MS_MAX)
        retry_at = now + max(pause_ms, refusal.retry_after_ms) * MS
        since = now if before is None else before.since
        held = Trouble(action, refusal, since, retry_at, failures)
        self._held[key_of(action)] = held
        return held

    def settle(self, action: Action) -> None:
        """The action succeeded. One that succeeded without effect is only forgotten once it isn't
        wanted again.
        """
        held = self._held.get(key_of(action))
        if held is not None and held.refusal.code != NO_EFFECT:
            del self._held[key_of(action)]

    def clear(self) -> None:
        """The spec has changed, and so may what stood in the way."""
        self._held.clear()

    def prune(self, wanted: Iterable[Action], now: Nanoseconds) -> None:
        """Forget failures of actions that aren't wanted any more, after their pause."""
        keys = {key_of(action): None for action in wanted}
        self._held = {
            key: held for key, held in self._held.items() if key in keys or held.retry_at > now
        }

    def with_action(self, kind: type[Act]) -> Trouble | None:
        """The failure of an action of this kind."""
        return next((held for held in self._held.values() if isinstance(held.action, kind)), None)

    def holds(self, action: Action, now: Nanoseconds) -> bool:
        """Is it too early to try this action again?"""
        held = self._held.get(key_of(action))
        return held is not None and now < held.retry_at

    def due(self, actions: Iterable[Action], now: Nanoseconds) -> tuple[Action, ...]:
        return tuple(action for action in actions if not self.holds(action, now))

    def next_after(self, now: Nanoseconds) -> Nanoseconds | None:
        """The earliest time of a retry that isn't due yet: those that are due are being tried."""
        return min((h.retry_at for h in self._held.values() if h.retry_at > now), default=None)
