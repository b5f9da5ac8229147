"""One object's desk: what is on its way for it, what didn't work, when it is planned again."""

from collections.abc import Callable, Iterable

from anabranch_operator.api.anabranch_names import Nanoseconds
from anabranch_operator.plan.engine.actions import Action
from anabranch_operator.plan.engine.events import Refusal
from anabranch_operator.plan.engine.retries import NO_EFFECT, Key, Troubles, key_of


class Desk:
    """One object's work."""

    __slots__ = (
        "actions",
        "done",
        "generation",
        "put_off",
        "queued",
        "reconcile",
        "troubles",
        "turn_at",
        "wake_at",
        "written_at",
    )

    def __init__(self) -> None:
        self.actions: dict[int, Action] = {}
        """On their way, by their numbers."""
        self.done: dict[Key, tuple[Action, int]] = {}
        """What was done by the last plan, and the version of the object that came of it."""
        self.queued = False
        self.generation = -1
        self.put_off: Nanoseconds | None = None
        """Until when the last plan's numbers wait to be shown."""
        self.reconcile = 0
        self.troubles = Troubles()
        self.turn_at: Nanoseconds | None = None
        """Its place among all whose numbers wait."""
        self.wake_at: Nanoseconds | None = None
        self.written_at: Nanoseconds = 0
        """When its status was last written."""

    def unrepeated(
        self, due: Iterable[Action], version_of: Callable[[Action], int], now: Nanoseconds
    ) -> tuple[Action, ...]:
        """What was just done, and is wanted again though nothing has moved, waits: a plan that
        can't be satisfied mustn't become a storm.
        """
        kept: list[Action] = []
        for action in due:
            if self.done.get(key_of(action)) == (action, version_of(action)):
                refusal = Refusal(NO_EFFECT, "it was done, and nothing came of it")
                self.troubles.note(action, refusal, now)
            else:
                kept.append(action)
        self.done.clear()
        return tuple(kept)

    def waits(self, now: Nanoseconds) -> bool:
        """Will it be planned anew, when its numbers may be shown?"""
        return self.put_off is not None and self.put_off > now
