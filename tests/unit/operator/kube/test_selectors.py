"""What is watched, and that nothing is watched that an operator of one namespace may not see."""

import itertools

import pytest

from anabranch_operator.api import names
from anabranch_operator.kube.selectors import Watched, watched


def chosen(*, everywhere: bool = False, nodes: bool = False) -> tuple[Watched, ...]:
    return watched("demo", "leader", "demo-metadata", everywhere=everywhere, nodes=nodes)


@pytest.mark.parametrize(
    ("everywhere", "nodes"), list(itertools.product([False, True], [False, True]))
)
def test_each_kind_is_watched_once_and_nodes_only_where_that_is_allowed(
    everywhere: bool, nodes: bool
) -> None:
    found = chosen(everywhere=everywhere, nodes=nodes)
    kinds = [each.kind for each in found]
    assert len(set(kinds)) == len(kinds)
    assert set(names.PLURALS) <= set(kinds)
    assert ("Node" in kinds) == nodes


def test_an_operator_of_one_namespace_asks_for_nothing_elsewhere() -> None:
    assert {each.namespace for each in chosen()} == {"demo"}


def test_logs_and_forks_and_what_serves_them_may_be_anywhere() -> None:
    wide = {each.kind for each in chosen(everywhere=True) if not each.namespace}
    assert wide == {names.LOG, names.FORK, "Pod", "Service", "EndpointSlice", "Job"}


def test_of_kinds_that_others_make_too_only_ours_are_watched() -> None:
    for each in chosen(everywhere=True):
        if each.kind not in names.PLURALS:
            assert each.labels or each.fields, each.kind
    by_kind = {each.kind: each for each in chosen()}
    assert by_kind["Lease"].fields == "metadata.name=leader"
    assert by_kind["StatefulSet"].fields == "metadata.name=demo-metadata"
