"""What the reconciler remembers of the objects that it plans, and of the actions in flight."""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from anabranch_operator.api.anabranch_names import Nanoseconds
from anabranch_operator.plan.engine.actions import Action, Delete
from anabranch_operator.plan.engine.events import Refusal
from anabranch_operator.plan.engine.objects import Ref
from anabranch_operator.plan.engine.retries import NO_EFFECT, Key, Troubles, key_of
from anabranch_operator.plan.engine.world import World


class ObjectState:
    """One object: its actions in flight, its failures, when its status was last written."""

    __slots__ = (
        "actions",
        "deferred_until",
        "done",
        "generation",
        "reconcile",
        "troubles",
        "turn_at",
        "written_at",
    )

    def __init__(self) -> None:
        self.actions: dict[int, Action] = {}
        """Actions in flight, by number."""
        self.done: dict[Key, tuple[Action, int]] = {}
        """Actions of the last plan that succeeded, each with the object's version after it."""
        self.generation = -1
        self.deferred_until: Nanoseconds | None = None
        """When the deferred, counters-only status write of the last plan is due."""
        self.reconcile = 0
        self.troubles = Troubles()
        self.turn_at: Nanoseconds | None = None
        """The time that the pacer has reserved for this object's next counters-only write."""
        self.written_at: Nanoseconds = 0
        """When the object's status was last written."""

    def unrepeated(
        self, due: Iterable[Action], version_of: Callable[[Action], int], now: Nanoseconds
    ) -> tuple[Action, ...]:
        """Drop actions that just succeeded and are wanted again although the object hasn't changed.

        They count as failed and back off: a plan that can't be satisfied mustn't become a storm.
        """
        kept: list[Action] = []
        for action in due:
            if self.done.get(key_of(action)) == (action, version_of(action)):
                refusal = Refusal(NO_EFFECT, "it succeeded, but changed nothing")
                self.troubles.note(action, refusal, now)
            else:
                kept.append(action)
        self.done.clear()
        return tuple(kept)

    def defers(self, now: Nanoseconds) -> bool:
        """Will the object be planned again anyway, when its deferred status write is due?"""
        return self.deferred_until is not None and self.deferred_until > now


class Flight(NamedTuple):
    """An action and the object that it was planned for."""

    ref: Ref
    action: Action


class InFlight:
    """Numbers are never used twice, so that an answer to a deposed leader finds nothing."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._flights: dict[int, Flight] = {}
        self._last = 0

    def __len__(self) -> int:
        return len(self._flights)

    def start(self, ref: Ref, action: Action) -> int:
        self._last += 1
        self._flights[self._last] = Flight(ref, action)
        if isinstance(action, Delete):
            self._world.deleting[action.uid] = None
        return self._last

    def finish(self, number: int) -> Flight | None:
        """None if the action was started in an earlier term."""
        flight = self._flights.pop(number, None)
        if flight is not None and isinstance(flight.action, Delete):
            self._world.deleting.pop(flight.action.uid, None)
        return flight

    def clear(self) -> None:
        self._flights.clear()
        self._world.deleting.clear()
