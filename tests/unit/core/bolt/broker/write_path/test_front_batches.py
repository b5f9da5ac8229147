"""Batches of a lazy front at a broker (decision 67)."""

import pytest
from tests.unit.core.bolt.broker.conftest import LOG, Stage

from anabranch.core.bolt.broker.control import OtherEngines
from anabranch.core.bolt.protocol.fronts import AppendFront, FrontEpoch, FrontMark
from anabranch.core.bolt.protocol.messages import Appended, Order
from anabranch.core.errors import StaleView
from anabranch.core.errors.refused import Refused
from anabranch.core.limits import Limits
from anabranch.core.records.record import Record, encode


def batch(number: int, *, view: int = 1) -> AppendFront:
    content = encode([Record(b"v")], producer_id=1, producer_epoch=0, base_sequence=number, now=0)
    return AppendFront(log=LOG, mark=FrontMark(FrontEpoch(view, 1), number, 0), batches=[content])


def test_a_batch_that_is_sent_again_takes_no_more_room() -> None:
    """A store that hangs doesn't fill the queue with the same bytes."""
    its = Stage(Limits())
    its.request(1, batch(1))
    its.turn()
    held = its.broker.gauges().appends_held_bytes
    for token in range(2, 100):
        its.request(token, batch(1))
        its.turn()
    assert its.broker.gauges().appends_held_bytes == held > 0
    assert len(its.puts) == 1
    assert [token for token, _ in its.replies] == [*range(1, 99)]
    assert {each.code for _, each in its.replies if isinstance(each, Refused)} == {"unavailable"}


def test_the_last_who_asked_for_a_batch_hears_what_became_of_it() -> None:
    its = Stage(Limits())
    its.request(1, batch(1))
    its.turn()
    its.request(2, batch(1))
    its.replies.clear()
    its.put()
    its.commit(7)
    assert its.replies == [(2, Appended(7))]
    its.request(3, batch(1))
    its.turn()
    assert len(its.puts) == 1, "what was answered is a new request"


def test_batches_of_two_epochs_that_come_together_are_two() -> None:
    """A leader's first batch isn't refused with what was said to the leader before it."""
    its = Stage(Limits())
    its.request(1, batch(1))
    its.request(2, batch(1, view=2))
    its.turn()
    assert its.replies == []
    its.put()
    stale = Refused.of(StaleView("a batch", 1, 2))
    command = its.commit(stale, 7)
    assert [row.front.epoch.view for row in command.rows if row.front is not None] == [1, 2]
    assert sorted(its.replies) == [(1, stale), (2, Appended(7))]


@pytest.mark.parametrize("others", list(OtherEngines))
def test_only_a_broker_beside_no_front_takes_orders_of_processes(others: OtherEngines) -> None:
    its = Stage(Limits(), others=others)
    its.request(1, Order(batch(1)))
    its.turn()
    refused = others is OtherEngines.THIS_PROCESS
    assert [code for _, code in its.codes()] == ["bad-request"] * refused
    assert len(its.puts) == (not refused)
