"""Every kind of event reaches the method that is for it, and none is passed over."""

from collections.abc import Sequence
from typing import Any

import pytest

from anabranch.core.alarms import Alarms
from anabranch.core.errors import AnabranchError, Unavailable
from anabranch.core.machine import (
    Drain,
    Effect,
    Elected,
    EntriesRead,
    Event,
    Gone,
    Linked,
    Persisted,
    PersistFailed,
    ReadFailed,
    Received,
    Request,
    Requests,
    Rest,
    SnapshotSaved,
    TimerFired,
    Token,
)
from anabranch.core.serving_machine import ServingMachine

WHY = Unavailable("the disk", "it is full")


class Machine(ServingMachine):
    """Notes what it is told."""

    def __init__(self) -> None:
        self._effects: list[Effect] = []
        self._alarms = Alarms(self._effects)
        self._alarms.at(0, lambda: self.seen.append(("rang",)))
        self.seen: list[tuple[Any, ...]] = []

    def step(self, event: Event) -> list[tuple[Any, ...]]:
        self._take(event)
        return self.seen

    def _asked(self, token: Token, message: Any) -> None:
        self.seen.append(("asked", token, message))

    def _received(self, sender: str, letter: Any) -> None:
        self.seen.append(("received", sender, letter))

    def _persisted(self, last: int) -> None:
        self.seen.append(("persisted", last))

    def _persist_failed(self, error: AnabranchError) -> None:
        self.seen.append(("persist failed", error))

    def _gone(self, tokens: Sequence[Token]) -> None:
        self.seen.append(("gone", *tokens))

    def _linked(self, node: str) -> None:
        self.seen.append(("linked", node))

    def _drain(self) -> None:
        self._effects.append(Rest())


@pytest.mark.parametrize(
    ("event", "seen"),
    [
        (Request(1, "a"), [("asked", 1, "a")]),
        (Requests((1, 2), ("a", "b")), [("asked", 1, "a"), ("asked", 2, "b")]),
        (Received("n", "letter"), [("received", "n", "letter")]),
        (Persisted(7), [("persisted", 7)]),
        (PersistFailed(WHY), [("persist failed", WHY)]),
        (TimerFired("alarms"), [("rang",)]),
        (Gone((1, 2)), [("gone", 1, 2)]),
        (Linked("n"), [("linked", "n")]),
        (SnapshotSaved(3), []),
    ],
    ids=lambda each: type(each).__name__,
)
def test_every_event_reaches_its_method(event: Event, seen: list[tuple[Any, ...]]) -> None:
    assert Machine().step(event) == seen


def test_effects_are_given_once() -> None:
    machine = Machine()
    machine._taken()
    machine.step(Drain())
    assert machine._taken() == (Rest(),)
    assert machine._taken() == ()


@pytest.mark.parametrize("event", [EntriesRead(1, ()), ReadFailed(1, WHY), Elected(1, 1)])
def test_an_event_that_the_machine_cant_have_asked_for_is_no_event(event: Event) -> None:
    with pytest.raises(AssertionError):
        Machine().step(event)
