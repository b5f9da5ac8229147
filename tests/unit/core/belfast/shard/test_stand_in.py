"""Which failures a subscriber has missed, and who serves a shard that has failed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch.core.belfast.ledger.decisions import (
    Admit,
    Arrange,
    ChangeView,
    CutTo,
    OpenWindow,
    Release,
)
from anabranch.core.belfast.ledger.ledger import Ledger, Standing
from anabranch.core.belfast.ledger.windows import Mode
from anabranch.core.belfast.protocol.messages import Failed
from anabranch.core.belfast.shard.stand_in import (
    check_start,
    failure_of,
    failures_since,
    server_of,
    stands_in,
)
from anabranch.core.errors import ShardAway

NAMES = ("a", "b", "c", "d")


def ledger_of_all() -> Ledger:
    ledger = Ledger()
    ledger.apply([Admit(name, (f"{name}1",), 1) for name in NAMES])
    return ledger


def seated(ledger: Ledger) -> list[int]:
    return [
        each.id
        for each in ledger.members.values()
        if each.standing in {Standing.WAITING, Standing.SEATED}
    ]


def go_on(ledger: Ledger) -> None:
    """A window more for all that are there, and a cut of it."""
    quotas = tuple((shard, 1) for shard in seated(ledger))
    number = ledger.windows[-1].number + 1 if ledger.windows else 0
    ledger.apply([OpenWindow(number, Mode.STEADY, 4, 1, quotas)])
    if number:
        done = ledger.windows[0]
        if ledger.cut < done.cuts:
            ledger.apply([CutTo(window=done.number, cut=done.cuts)])
    ledger.apply([CutTo(window=number, cut=2)])


@given(st.lists(st.tuples(st.sampled_from(["go on", "fail", "back"]), st.sets(st.integers(0, 3)))))
def test_who_missed_views_is_told_of_all_their_failures_view_by_view(
    steps: list[tuple[str, set[int]]],
) -> None:
    ledger, failures = ledger_of_all(), list[Failed]()
    go_on(ledger)
    for what, which in steps:
        able = seated(ledger)
        failing = [shard for shard in able if shard in which]
        if what == "go on":
            go_on(ledger)
        elif what == "fail" and failing and len(failing) < len(able):
            left = min(shard for shard in able if shard not in failing)
            view = ledger.view + 1
            ledger.apply([ChangeView(view=view, failed=tuple(failing), stand_in=left)])
            names = tuple(NAMES[shard] for shard in failing)
            failures.append(
                Failed(view=view, since=ledger.confirmed, shards=names, upto=ledger.horizon)
            )
        elif what == "back":
            for member in list(ledger.members.values()):
                if member.standing is Standing.FAILED and member.id in which:
                    ledger.apply([Admit(member.name, member.replicas, 1)])
    for view in range(ledger.view + 1):
        assert failures_since(ledger, view) == failures[view:]


def failed() -> Ledger:
    """`b` has failed in the first view, and `a` stands in for it."""
    ledger = ledger_of_all()
    go_on(ledger)
    ledger.apply([ChangeView(view=1, failed=(1,), stand_in=0)])
    return ledger


def test_while_a_shard_has_failed_its_stand_in_serves_its_subscribers() -> None:
    ledger = failed()
    a, b = ledger.members[0], ledger.members[1]
    assert server_of(ledger, b) == a
    assert server_of(ledger, a) == a
    assert stands_in(ledger, 1, 0)
    assert not stands_in(ledger, 1, 2)
    assert not stands_in(ledger, 0, 0)


def test_a_stand_in_that_fails_itself_hands_over() -> None:
    ledger = failed()
    ledger.apply([ChangeView(view=2, failed=(0,), stand_in=3)])
    assert server_of(ledger, ledger.members[1]).name == "d"
    assert stands_in(ledger, 1, 3)
    assert not stands_in(ledger, 1, 0)


def test_a_shard_that_is_back_serves_its_own_again() -> None:
    ledger = failed()
    ledger.apply([Admit("b", ("b1",), 1)])
    b = ledger.members[1]
    assert server_of(ledger, b) == b
    assert not stands_in(ledger, 1, 0)


def test_a_failed_shard_says_where_it_failed_and_how_far_its_noops_go() -> None:
    """Two cuts of four shards are confirmed, and two more of its window are published."""
    assert failure_of(failed().members[1]) == Failed(view=1, since=8, shards=("b",), upto=16)


@pytest.mark.parametrize(("start", "served"), [(0, False), (7, False), (8, True), (20, True)])
def test_records_from_before_a_failure_are_with_the_shard_that_failed(
    start: int, served: bool
) -> None:
    b = failed().members[1]
    if served:
        check_start(b, start)
    else:
        with pytest.raises(ShardAway, match="below 8"):
            check_start(b, start)


def test_a_shard_that_left_is_its_own_server_whoever_leads_it() -> None:
    ledger = ledger_of_all()
    go_on(ledger)
    ledger.apply(
        [
            Release(2),
            CutTo(window=0, cut=4),
            Arrange(shard=2, epoch=2, primary="c2", replicas=("c2",)),
        ]
    )
    c = ledger.members[2]
    assert c.standing is Standing.LEFT
    assert server_of(ledger, c).primary == "c2"
