"""A ShardGroup that is deleted and made again under the same name, while the old pods still run."""

from typing import Any

import pytest
from tests.unit.operator.belfast_log import (
    GROUP,
    LOOK_S,
    BelfastHarness,
)

from anabranch_operator.plan.engine.actions import Delete


def replace_group(harness: BelfastHarness, **spec: Any) -> None:
    """The group is deleted, and declared anew before its pods are collected."""
    harness.kube.collects = False
    harness.kube.delete(GROUP)
    harness.declare(**spec)
    harness.office.wait(LOOK_S + 1)


@pytest.mark.parametrize("left", [True, False])
def test_volumes_stay_while_pods_of_a_deleted_group_use_them(
    harness: BelfastHarness, *, left: bool
) -> None:
    if left:
        harness.edit(GROUP, shards=1)
        harness.settle()
        harness.belfast.trim()
        harness.office.done.clear()
    else:
        harness.fail("orders-1")
    replace_group(harness, shards=1, leaving={"waitFor": "Nothing"})
    assert "orders-1-0" in harness.names()
    assert "data-orders-1-0" in harness.volumes()
    assert harness.done(Delete) == []
    harness.frozen.clear()
    harness.kube.collect()
    harness.settle()
    assert harness.names() == ["orders-0-0", "orders-0-1"]
    assert not [each for each in harness.volumes() if "orders-1" in each]


def test_replicas_of_a_deleted_group_are_not_evicted_at_once(harness: BelfastHarness) -> None:
    replace_group(harness)
    assert not harness.evict("orders-0-0"), (
        "a window counts on it, and no replica is the new group's"
    )
    assert not harness.evict("orders-0-1")
    harness.kube.collect()
    harness.settle()
    assert harness.evict("orders-0-0")
    assert not harness.evict("orders-0-1")


def test_a_group_of_a_name_that_was_there_before_gets_its_seats(harness: BelfastHarness) -> None:
    harness.edit(GROUP, shards=0)
    harness.settle()
    harness.belfast.trim()
    harness.settle()
    harness.kube.delete(GROUP)
    harness.settle()
    harness.declare()
    harness.settle()
    assert harness.group.status.seated == 2
    assert harness.condition("Ready")[:2] == ("True", "Seated")
