"""The terms of a Belfast log's sequencers, kept where their disks aren't."""

import pytest
from tests.etcd_groups import Group

from anabranch.core.errors import Deposed
from anabranch.shell.etcd.group.epochs import Epochs, keep, latest


def reign(term: int, leader: str, index: int = 0) -> Epochs:
    return Epochs(term=term, leader=leader, view=0, window=0, index=index)


def test_the_last_term_counts_and_those_before_go(group: Group) -> None:
    assert latest(group.client, group.cluster) is None
    keep(group.client, group.cluster, reign(1, "s-0"))
    keep(group.client, group.cluster, reign(3, "s-1"))
    keep(group.client, group.cluster, reign(3, "s-1", index=40))
    assert latest(group.client, group.cluster) == reign(3, "s-1", index=40)


def test_a_group_that_begins_anew_must_not_lead(group: Group) -> None:
    keep(group.client, group.cluster, reign(7, "s-0"))
    with pytest.raises(Deposed):
        keep(group.client, group.cluster, reign(1, "s-0"))
    with pytest.raises(Deposed):
        keep(group.client, group.cluster, reign(7, "s-2"))
    assert latest(group.client, group.cluster) == reign(7, "s-0")


def test_a_group_that_begins_anew_must_not_lead_whatever_its_term_and_leader(group: Group) -> None:
    kept = reign(1, "s-0", index=40)
    keep(group.client, group.cluster, kept)
    for term, leader in ((1, "s-0"), (2, "s-1"), (50, "s-0")):
        with pytest.raises(Deposed):
            keep(group.client, group.cluster, reign(term, leader, index=3))
    assert latest(group.client, group.cluster) == kept
    keep(group.client, group.cluster, reign(2, "s-1", index=41))


def test_logs_do_not_see_each_other(group: Group) -> None:
    keep(group.client, group.cluster, reign(7, "s-0"))
    keep(group.client, f"{group.cluster}-b", reign(1, "s-0"))
    assert latest(group.client, f"{group.cluster}-b") == reign(1, "s-0")
