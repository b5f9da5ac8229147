"""A broker that is told to end: what is on it goes elsewhere, what it has in hand is finished."""

from typing import Any

import pytest
from tests.unit.core.bolt.broker.parts import Bench

from anabranch.core.bolt.broker.drain import Draining
from anabranch.core.bolt.broker.inquiries import Correspondence
from anabranch.core.bolt.protocol.commands import Done, DrainBroker
from anabranch.core.bolt.protocol.letters import Applied
from anabranch.core.errors import UnknownBroker
from anabranch.core.errors.refused import Refused

DRAIN_MS = 200


class Ending:
    def __init__(self) -> None:
        self.bench = Bench(drain_ms=DRAIN_MS, propose_retry_ms=50)
        self.correspondence = Correspondence(self.bench.context)
        self.correspondence.begin(b"a life")
        self.held = 3
        self.closed = 0
        self.draining = Draining(
            self.bench.context,
            correspondence=self.correspondence,
            epoch=lambda: 7,
            held=lambda: self.held,
        )
        self.draining.on_closed = self.close

    def close(self) -> None:
        self.closed += 1

    def answer(self, outcome: Any = Done()) -> None:  # noqa: B008  # frozen
        for asked in self.bench.told():
            self.correspondence.heard(Applied(asked.token, outcome))


@pytest.fixture
def ending() -> Ending:
    return Ending()


def test_its_logs_are_placed_elsewhere_before_anything_is_refused(ending: Ending) -> None:
    ending.draining.begin()
    ending.draining.begin()
    (asked,) = ending.bench.told()
    assert asked.command == DrainBroker("b", 7)
    assert not ending.draining.closed
    ending.correspondence.heard(Applied(asked.token, Done()))
    assert ending.draining.closed
    assert ending.closed == 1
    ending.draining.refuse(5)
    ((token, refused),) = ending.bench.replies()
    assert (token, refused.code) == (5, "broker-draining")


def test_it_rests_once_nothing_is_in_hand(ending: Ending) -> None:
    ending.draining.begin()
    ending.answer()
    ending.bench.advance(50)
    assert ending.bench.rested() == 0
    ending.held = 0
    ending.bench.advance(10)
    assert ending.bench.rested() == 1
    ending.bench.advance(2 * DRAIN_MS)
    assert ending.bench.rested() == 0, "once"


@pytest.mark.parametrize("answered", [True, False])
def test_it_rests_when_its_time_is_over_whatever_is_in_hand(ending: Ending, answered: bool) -> None:
    ending.draining.begin()
    if answered:
        ending.answer()
    ending.bench.advance(DRAIN_MS - 1)
    assert ending.bench.rested() == 0
    ending.bench.advance(1)
    assert ending.bench.rested() == 1


def test_one_that_the_metadata_dont_know_any_more_ends_the_same(ending: Ending) -> None:
    ending.held = 0
    ending.draining.begin()
    ending.answer(Refused.of(UnknownBroker("b of epoch 7")))
    assert ending.draining.closed
    assert ending.bench.rested() == 1


def test_nothing_is_refused_while_what_is_new_is_taken(ending: Ending) -> None:
    ending.draining.begin()
    with pytest.raises(AssertionError, match="still taken"):
        ending.draining.refuse(1)
