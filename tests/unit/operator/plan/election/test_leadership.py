"""An operator acts only while it leads and has seen everything."""

import pytest

from anabranch_operator.plan.election.leadership import Leadership


def test_a_leader_acts_once_every_kind_is_listed() -> None:
    leadership = Leadership(("Log", "Fork"))
    leadership.elect(3)
    leadership.list("Log")
    assert (leadership.leads, leadership.acts) == (True, False)
    leadership.list("Fork")
    assert leadership.acts


def test_an_operator_that_was_deposed_acts_no_more_but_stays_synced() -> None:
    leadership = Leadership(("Log",))
    leadership.list("Log")
    leadership.elect(3)
    leadership.depose()
    assert (leadership.leads, leadership.synced, leadership.acts) == (False, True, False)


def test_an_epoch_that_no_lease_has_is_refused() -> None:
    with pytest.raises(AssertionError):
        Leadership(()).elect(0)
