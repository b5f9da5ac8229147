"""What snapshots' summaries say of earlier exports, on branches, after promotions and expiry."""

import pytest
from hypothesis import given
from hypothesis import strategies as some

from anabranch.errors import BadRequest
from anabranch_spark.export.lineage import (
    MAIN,
    Branches,
    Commit,
    Snapshot,
    View,
    base,
    commit_of,
    next_position,
)

ORDERS = View("orders", 7, 3, {})
FORK = View("orders--what-if", 9, 0, {7: 250})
RECORDS = "total-records"


def summary(log: str, log_id: int, start: int, end: int, generation: int = 0) -> dict[str, str]:
    commit = Commit(log, log_id, generation, start, end)
    return {"operation": "append", RECORDS: str(end), **commit.properties()}


def table(*ends: int, branch: str = MAIN) -> Branches:
    """One export of `orders` for each end; snapshot n + 1 has the nth."""
    snapshots, start = dict[int, Snapshot](), 0
    for number, end in enumerate(ends, 1):
        parent = number - 1 or None
        snapshots[number] = Snapshot(number, parent, summary("orders", 7, start, end))
        start = end
    return Branches({branch: len(ends)} if ends else {}, snapshots)


@given(some.lists(some.integers(1, 100), min_size=1, max_size=8))
def test_an_export_goes_on_after_the_newest_commit(sizes: list[int]) -> None:
    ends = [sum(sizes[: number + 1]) for number in range(len(sizes))]
    assert next_position(table(*ends), MAIN, ORDERS) == ends[-1]


def test_snapshots_of_others_between_exports_are_passed_over() -> None:
    branches = table(100, 200)
    branches.snapshots[3] = Snapshot(3, 2, {"operation": "replace", RECORDS: "200"})
    branches.heads[MAIN] = 3
    assert next_position(branches, MAIN, ORDERS) == 200


def test_a_table_without_exports_has_no_next_position() -> None:
    assert next_position(table(), MAIN, ORDERS) is None
    assert table().is_empty(MAIN)


def test_expired_snapshots_leave_a_branch_with_records_of_unknown_positions() -> None:
    branches = table(100, 200)
    del branches.snapshots[1]
    assert next_position(branches, MAIN, ORDERS) == 200
    branches.snapshots[2] = Snapshot(2, 1, {"operation": "replace", RECORDS: "200"})
    assert next_position(branches, MAIN, ORDERS) is None
    assert not branches.is_empty(MAIN)


@pytest.mark.parametrize(
    ("shared", "end"), [(250, 200), (300, 300), (299, 200), (100, 100), (99, None), (10_000, 300)]
)
def test_a_forks_branch_is_made_from_what_the_fork_inherits(shared: int, end: int | None) -> None:
    found = base(table(100, 200, 300), [MAIN], View("orders--a", 9, 0, {7: shared}))
    assert (found.end if found is not None else None) == end


def test_a_fork_of_a_fork_is_made_from_its_parents_branch_first() -> None:
    branches = table(100, 200, 300)
    branches.snapshots[10] = Snapshot(10, 2, summary("orders--a", 8, 200, 260))
    branches.heads["orders--a"] = 10
    view = View("orders--a--b", 9, 0, {8: 260, 7: 220})
    found = base(branches, ["orders--a", MAIN], view)
    assert found is not None
    assert (found.snapshot, found.end) == (10, 260)
    older = base(branches, ["orders--a", MAIN], View("orders--a--b", 9, 0, {8: 255, 7: 220}))
    assert older is not None
    assert (older.snapshot, older.end) == (2, 200)


def test_a_forks_own_commits_come_after_what_it_inherits() -> None:
    branches = table(100, 200, branch="fork")
    assert next_position(branches, "fork", FORK) == 200
    branches.snapshots[3] = Snapshot(3, 2, summary(FORK.log, FORK.log_id, 200, 400))
    branches.heads["fork"] = 3
    assert next_position(branches, "fork", FORK) == 400


def test_a_branch_that_ends_past_what_a_fork_inherits_is_refused() -> None:
    with pytest.raises(BadRequest, match=r"orders\[200\.\.300\)"):
        next_position(table(200, 300), MAIN, FORK)


def test_another_logs_table_is_refused() -> None:
    with pytest.raises(BadRequest, match=r"payments.*doesn't have"):
        next_position(table(100), MAIN, View("payments", 8, 0, {}))


def test_a_table_that_knows_a_later_generation_is_refused() -> None:
    branches = table(100)
    later = summary("orders", 7, 100, 200, generation=4)
    branches.snapshots[2] = Snapshot(2, 1, later)
    branches.heads[MAIN] = 2
    with pytest.raises(BadRequest, match="restored"):
        next_position(branches, MAIN, ORDERS)


def test_a_summary_says_what_was_written() -> None:
    commit = Commit("orders", 7, 3, 100, 200)
    found = commit_of(Snapshot(5, 4, {"operation": "append", **commit.properties()}))
    assert found == Commit("orders", 7, 3, 100, 200, snapshot=5)
    assert set(commit.properties()) == {
        "anabranch.log",
        "anabranch.log-id",
        "anabranch.generation",
        "anabranch.start",
        "anabranch.end",
    }
    assert commit_of(Snapshot(5, 4, {"operation": "append"})) is None


@pytest.mark.parametrize("wrong", [{"anabranch.end": "many"}, {"anabranch.end": None}])
def test_half_a_summary_is_refused(wrong: dict[str, str | None]) -> None:
    given = {**summary("orders", 7, 0, 100), **wrong}
    kept = {name: value for name, value in given.items() if value is not None}
    with pytest.raises(BadRequest, match="snapshot 5"):
        commit_of(Snapshot(5, None, kept))
