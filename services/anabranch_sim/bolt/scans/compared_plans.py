"""Scan plans of the state machine held against the naive ones."""

from collections.abc import Callable

from anabranch.core.bolt.protocol.queries import PlanPage, Slice
from anabranch.core.bolt.protocol.scans import PlanId, ReadPlan
from anabranch.core.bolt.state.state import State
from anabranch.core.errors.refused import Refused
from anabranch_sim.bolt.naive_model import Naive
from anabranch_sim.bolt.scans.naive_plans import NaivePlan

SLICES = 3
"""Of a page: few, so that there are several."""

Identify = Callable[[list[Slice]], list[tuple[int, int, int]]]


def compare_plans(state: State, naive: Naive, identify: Identify) -> None:
    """Pages that are given name the records that were planned, and nothing that any page named has
    become deletable.
    """
    live = state.replica.plans.live
    assert [*live] == [*naive.plans.live]
    for id, plan in naive.plans.live.items():
        assert live[id].plan.expires == plan.expires
        _compare_pages(state, naive, id, plan, identify)
    references = state.replica.references
    deletable = references.deletable(state.replica.plans.horizon, 1 << 30)
    for plan in naive.plans.live.values():
        assert not plan.named.intersection(deletable), "a live plan names it"


def _compare_pages(
    state: State, naive: Naive, id: PlanId, plan: NaivePlan, identify: Identify
) -> None:
    position, found = plan.start, list[tuple[int, int, int]]()
    end = len(plan.records)
    while position < end:
        page = state.answer(ReadPlan(plan.log, id, position, SLICES))
        if isinstance(page, Refused):
            _check_refusal(naive, plan, page)
            return
        assert isinstance(page, PlanPage)
        assert 0 < len(page.slices) <= SLICES
        assert page.slices[0].first == position
        found += identify(page.slices)
        plan.named |= {each.object for each in page.slices}
        position = page.next
    assert position == end
    planned = plan.records[plan.start :]
    assert found == [(each.object, each.offset, each.nth) for each in planned]


def _check_refusal(naive: Naive, plan: NaivePlan, refused: Refused) -> None:
    log = naive.logs.get(plan.log)
    if log is None:
        assert refused.code == naive.gone[plan.log].code
        return
    assert refused.code == "plan-outdated"
    speculative = len(plan.records) > plan.settled
    assert speculative or log.start > plan.start, "settled records that are there can be planned"
