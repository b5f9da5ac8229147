"""A lazy front's SequencerSet: rolled one by one, and left alone while its log decides nothing."""

from tests.unit.operator.belfast_log import BAD, LOG, setting
from tests.unit.operator.plan.lazy.conftest import ORDERS, TEMPLATE, FrontHarness


def test_sequencers_are_rolled_by_view_changes_and_the_leader_last(harness: FrontHarness) -> None:
    before = harness.front.number
    harness.edit(ORDERS, sequencers={"template": {**TEMPLATE, "image": "better"}})
    harness.settle()
    assert harness.ended() == ["orders-sequencer-1", "orders-sequencer-2", "orders-sequencer-0"]
    assert harness.log.status.updated == 3
    assert harness.front.number >= before + 6, "each left a view, and came back in another"


def test_a_bad_spec_breaks_one_sequencer(harness: FrontHarness) -> None:
    harness.edit(ORDERS, sequencers={"template": {**TEMPLATE, "image": BAD}})
    for _ in range(30):
        harness.step()
    assert harness.ended() == ["orders-sequencer-1"]
    assert harness.front.leader == setting(harness.pod("orders-sequencer-0"), "ADDRESS")
    assert harness.condition("Degraded", LOG)[:2] == ("True", "PodsFailing")


def test_nobody_is_rolled_or_evicted_while_the_log_commits_nothing(harness: FrontHarness) -> None:
    """The log decides each view: none could begin without the one that ends."""
    harness.front.held_up = "the object store doesn't answer"
    harness.step()
    status, reason, message = harness.condition("Degraded", LOG)
    assert status == "True"
    assert "the object store doesn't answer" in message
    assert reason in {"NothingCommitted", "WaitingForCopies"}
    harness.edit(ORDERS, sequencers={"template": {**TEMPLATE, "image": "better"}})
    for _ in range(5):
        harness.step()
    assert harness.ended() == []
    assert harness.condition("RolloutBlocked", LOG)[0] == "True"
    assert not harness.evict("orders-sequencer-1")
    harness.front.held_up = ""
    harness.settle()
    assert harness.log.status.updated == 3
    assert harness.condition("Degraded", LOG)[0] == "False"


def test_one_pod_is_evicted_at_a_time(harness: FrontHarness) -> None:
    assert harness.evict("orders-sequencer-1")
    assert not harness.evict("orders-sequencer-2")


def test_a_sealed_view_is_shown_on_the_set_and_the_log(harness: FrontHarness) -> None:
    harness.vanish("orders-sequencer-1")
    harness.run()
    harness.office.wait(11)
    assert harness.condition("Sealed", LOG)[:2] == ("True", "ViewSealed")
    assert harness.said("Sealed")[:2] == ("True", "ViewSealed")
    assert harness.said("Reconfiguring")[:2] == ("True", "ViewChanging")
    harness.settle()
    assert harness.said("Sealed")[0] == "False"
