"""Sequencers whose processes are to end."""

import pytest
from tests.unit.core.erwin.orderer.sequencer_stage import LIMITS, Cluster

from anabranch.core.errors.refused import Refused
from anabranch.core.machine import Drain, Linked
from anabranch.core.sequencing.protocol.letters import Present
from anabranch.core.sequencing.protocol.messages import Taken


@pytest.fixture(params=[True, False], ids=["fsync", "memory"])
def cluster(request: pytest.FixtureRequest) -> Cluster:
    fsync: bool = request.param
    cluster = Cluster("a", "b", "c", fsync=fsync)
    cluster.run()
    cluster.change(1, "a", "b")
    return cluster


def test_a_leader_that_drains_orders_its_ring_and_takes_no_more(cluster: Cluster) -> None:
    cluster.away.add(cluster.shards[1].primary)
    cluster.append(0)
    cluster.step("a", Drain())
    cluster.run()
    assert not cluster.machines["a"].rested
    refused = cluster.answers[cluster.append(1)[0]]
    assert isinstance(refused, Refused)
    assert refused.code == "unavailable"
    cluster.away.clear()
    cluster.step("a", Linked(cluster.shards[1].primary))
    cluster.run()
    assert cluster.machines["a"].rested
    assert cluster.shards[1].stable == 1


def test_a_leader_that_drains_does_not_wait_for_shards_that_are_gone(cluster: Cluster) -> None:
    cluster.away.add(cluster.shards[1].primary)
    cluster.append(0)
    cluster.step("a", Drain())
    cluster.wait(900)
    assert not cluster.machines["a"].rested
    cluster.wait(2_000)
    assert cluster.machines["a"].rested


def test_a_leader_that_drains_waits_for_what_is_ordered_to_be_stable(cluster: Cluster) -> None:
    cluster.away.add(cluster.shards[1].primary)
    cluster.append(0)
    cluster.machines["b"].up = False
    cluster.away.clear()
    cluster.wait(600)
    assert (cluster["a"].replica.ordered, cluster["a"].replica.stable) == (1, 0)
    cluster.step("a", Drain())
    assert not cluster.machines["a"].rested
    cluster.machines["b"].up = True
    cluster.wait(900)
    assert cluster.machines["a"].rested
    assert cluster["a"].replica.stable == 1


def test_a_member_that_drains_may_go_at_once(cluster: Cluster) -> None:
    cluster.append(0)
    cluster.step("b", Drain())
    cluster.run()
    assert cluster.machines["b"].rested


def test_a_process_that_ends_serves_until_the_log_goes_on_without_it() -> None:
    cluster = Cluster("a", "b", "c", hands_over=True)
    cluster.run()
    cluster.change(1, "a", "b", "c")
    cluster.said.clear()
    cluster.step("a", Drain())
    cluster.run()
    assert [each.leaving for each in cluster.said if isinstance(each, Present)] == [True]
    tokens = cluster.append(0)
    assert [cluster.answers[token] for token in tokens] == [Taken()] * 3
    assert not cluster.machines["a"].rested
    cluster.change(2, "b", "c", source="a")
    cluster.wait(100)
    assert cluster.machines["a"].rested


def test_a_process_that_ends_says_so_also_if_the_log_goes_on_without_it() -> None:
    """It may still have records to order, and mustn't be taken into another view meanwhile."""
    cluster = Cluster("a", "b", "c", hands_over=True)
    cluster.run()
    cluster.change(1, "a", "b", "c")
    cluster.change(2, "b", "c", source="b")
    cluster.said.clear()
    cluster.step("a", Drain())
    cluster.run()
    assert [each.leaving for each in cluster.said if isinstance(each, Present)] == [True]


def test_a_process_that_ends_waits_for_the_others_only_so_long() -> None:
    cluster = Cluster("a", "b", hands_over=True)
    cluster.run()
    cluster.change(1, "a", "b")
    cluster.step("a", Drain())
    cluster.wait(LIMITS.handover_ms - 100)
    assert not cluster.machines["a"].rested
    cluster.wait(200)
    assert cluster.machines["a"].rested


def test_a_sequencer_that_is_alone_ends_at_once() -> None:
    cluster = Cluster("a", hands_over=True)
    cluster.run()
    cluster.change(1, "a")
    cluster.step("a", Drain())
    cluster.run()
    assert cluster.machines["a"].rested
