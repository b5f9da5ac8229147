"""The leader's plan is the ledger as it will be: what is proposed leads there."""

from hypothesis import given
from hypothesis import strategies as st

from anabranch.core.belfast.ledger.decisions import (
    Admit,
    AnyDecision,
    ChangeView,
    CutTo,
    OpenWindow,
    Release,
)
from anabranch.core.belfast.ledger.ledger import Ledger, Standing
from anabranch.core.belfast.ledger.rules import Rules
from anabranch.core.belfast.ledger.windows import Mode, Window
from anabranch.core.belfast.sequencer.plan import Plan

NAMES = ("a", "b", "c")


def known() -> Ledger:
    ledger = Ledger()
    ledger.apply([Admit(name, (name,), 1) for name in NAMES])
    return ledger


def opening(number: int, *quotas: int, rounds: int = 4, groups: int = 1) -> OpenWindow:
    seated = tuple((shard, quota) for shard, quota in enumerate(quotas) if quota)
    return OpenWindow(number, Mode.STEADY, rounds, groups, seated)


class Pair:
    """A ledger of the group's, and the plan of its leader, which is ahead of it."""

    def __init__(self) -> None:
        self.ledger = known()
        self.plan = Plan(self.ledger, Rules())
        self.decided: list[AnyDecision] = []
        self.windows: list[Window] = []

    def decide(self, decision: AnyDecision) -> None:
        self.plan.decide(decision)
        self.decided.append(decision)
        if isinstance(decision, OpenWindow):
            self.windows.append(self.plan.ledger.windows[-1])

    def open(self, quotas: tuple[int, int, int], rounds: int, groups: int) -> None:
        able = [each.id for each in self.plan.members(Standing.WAITING, Standing.SEATED)]
        seated = [quota if shard in able else 0 for shard, quota in enumerate(quotas)]
        if any(seated):
            groups = min(groups, sum(map(bool, seated)))
            self.decide(opening(len(self.windows), *seated, rounds=rounds, groups=groups))

    def cut(self, cuts: int) -> None:
        window = self.plan.cutting
        if window is not None:
            ledger = self.plan.ledger
            done = ledger.cut if window is ledger.windows[0] else 0
            self.decide(CutTo(window=window.number, cut=min(done + cuts, window.cuts)))

    def fail(self, shard: int) -> None:
        standing = (Standing.SEATED, Standing.LEAVING)
        seated = [each.id for each in self.plan.members(*standing)]
        if shard in seated and len(seated) > 1:
            left = min(each for each in seated if each != shard)
            view = self.plan.ledger.view + 1
            self.decide(ChangeView(view=view, failed=(shard,), stand_in=left))


steps = st.lists(
    st.one_of(
        st.tuples(
            st.just("open"),
            st.tuples(st.integers(0, 2), st.integers(0, 2), st.integers(0, 2)),
            st.integers(1, 4),
        ),
        st.tuples(st.just("cut"), st.just((0, 0, 0)), st.integers(1, 5)),
        st.tuples(st.just("fail"), st.just((0, 0, 0)), st.integers(0, 2)),
        st.tuples(st.just("leave"), st.just((0, 0, 0)), st.integers(0, 2)),
        st.tuples(st.just("take"), st.just((0, 0, 0)), st.just(0)),
    ),
    min_size=10,
    max_size=25,
)


def perform(pair: Pair, what: str, quotas: tuple[int, int, int], count: int) -> None:
    match what:
        case "open" if len(pair.plan.ledger.windows) < 4:
            pair.open(quotas, count, groups=1 + count % 2)
        case "cut":
            pair.cut(count)
        case "fail":
            pair.fail(count)
        case "leave":
            if pair.plan.ledger.members[count].standing is Standing.SEATED:
                pair.decide(Release(count))
        case "take":
            pair.ledger.apply(pair.plan.take())
            assert pair.ledger.image() == pair.plan.ledger.image()
        case _:
            pass


@given(steps)
def test_what_is_proposed_makes_the_ledger_what_was_planned(
    done: list[tuple[str, tuple[int, int, int], int]],
) -> None:
    pair = Pair()
    for what, quotas, count in done:
        perform(pair, what, quotas, count)
    one_by_one = known()
    one_by_one.apply(pair.decided)
    assert pair.plan.ledger.image() == one_by_one.image()
    pair.ledger.apply(pair.plan.take())
    assert pair.ledger.image() == pair.plan.ledger.image()
    assert pair.plan.take() == []


@given(steps)
def test_rounds_left_and_who_is_counted_on_are_those_of_windows_that_are_not_cut(
    done: list[tuple[str, tuple[int, int, int], int]],
) -> None:
    pair = Pair()
    for what, quotas, count in done:
        perform(pair, what, quotas, count)
        ledger = pair.plan.ledger
        first = ledger.windows[0].number if ledger.windows else 0
        open_ = [
            window
            for window in pair.windows
            if window.number > first or (window.number == first and ledger.cut < window.cuts)
        ]
        assert pair.plan.cutting == (open_[0] if open_ else None)
        left = sum(window.rounds for window in open_)
        begun = open_ and open_[0].number == first
        assert pair.plan.rounds_left == left - (ledger.cut // open_[0].groups if begun else 0)
        for shard in range(len(NAMES)):
            waited_for = [
                window.number
                for window in open_
                if shard in window.by_shard and (window.number, shard) not in ledger.gaps
            ]
            assert pair.plan.counts_on(shard) == bool(waited_for)


def test_cuts_of_one_window_that_come_together_are_proposed_as_one() -> None:
    plan = Plan(known(), Rules())
    plan.decide(opening(0, 1, 1))
    plan.decide(CutTo(window=0, cut=1))
    plan.decide(CutTo(window=0, cut=3))
    assert plan.take() == [opening(0, 1, 1), CutTo(window=0, cut=3)]


def test_cuts_are_not_joined_across_a_failure_or_a_window() -> None:
    """The order says what is void: cuts before a change of view are not those behind it."""
    plan = Plan(known(), Rules())
    decided = [
        opening(0, 1, 1, rounds=2),
        opening(1, 1, 1, rounds=2),
        CutTo(window=0, cut=1),
        ChangeView(view=1, failed=(1,), stand_in=0),
        CutTo(window=0, cut=2),
        CutTo(window=1, cut=1),
    ]
    for each in decided:
        plan.decide(each)
    assert plan.take() == decided


def test_a_plan_changes_nothing_of_the_ledger_that_it_began_with() -> None:
    ledger = known()
    before = ledger.image()
    plan = Plan(ledger, Rules())
    plan.decide(opening(0, 1, 1))
    plan.decide(Release(1))
    assert ledger.image() == before


def test_members_are_told_by_their_standing_in_the_order_of_their_ids() -> None:
    plan = Plan(known(), Rules())
    plan.decide(opening(0, 1, 0, 1))
    assert [each.name for each in plan.members(Standing.SEATED)] == ["a", "c"]
    assert [each.name for each in plan.members(Standing.WAITING)] == ["b"]
    assert [each.name for each in plan.members(*Standing)] == ["a", "b", "c"]
