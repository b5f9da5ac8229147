"""What two logs have in common, and what only one of them has: against a naive model."""

from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.commands import Command
from tests.unit.cli.records import fresh_name

from anabranch.cli.failure import Exit

A, B, BOTH = "a", "b", "both"


@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.sampled_from([A, B, BOTH]), max_size=12), st.integers(0, 4), st.integers(0, 3))
def test_a_parent_and_its_fork_are_told_apart_by_where_records_were_appended(
    ask: Command, order: list[str], before: int, limit: int
) -> None:
    """The parent's records reach the fork while it is continuous; the fork's own stay there."""
    parent = fresh_name()
    ask("log", "create", parent)
    if before:
        ask("append", parent, *["same"] * before)
    ask("fork", parent, "f")
    fork = f"{parent}--f"
    mine = ["same"] * before
    theirs = list(mine)
    for number, where in enumerate(order):
        value = f"{where}-{number}"
        ask("append", fork if where == B else parent, value)
        theirs.append(value)
        if where != B:
            mine.append(value)
    shared = 0
    while shared < min(len(mine), len(theirs)) and mine[shared] == theirs[shared]:
        shared += 1
    found: Any = ask("diff", parent, fork, "-n", str(limit), "-o", "json").json
    assert (found["since"], found["shared"], found["complete"]) == (0, shared, True)
    only = [value for value in theirs if value.startswith(B + "-")]
    assert (found["a"]["records"], found["b"]["records"]) == (0, len(only))
    assert [each["value"] for each in found["b"]["first"]] == only[:limit]
    assert sum(end - start for start, end in found["b"]["ranges"]) == len(only)
    said = ask("diff", parent, fork, "-n", str(limit)).out
    assert f"only in {fork}: {len(only)} record" in said
    assert (f"... and {len(only) - limit} more" in said) == (len(only) > limit)
    mirrored = ask("diff", fork, parent, "-o", "json").json
    assert (mirrored["a"]["ranges"], mirrored["b"]["ranges"]) == (
        found["b"]["ranges"],
        found["a"]["ranges"],
    )


def test_equal_contents_of_two_roots_are_nothing_in_common(ask: Command, log: str) -> None:
    other = fresh_name()
    ask("log", "create", other)
    for name in (log, other):
        ask("append", name, "same")
    said = ask("diff", log, other).out.splitlines()
    assert said[0] == "nothing in common at the beginning"
    assert said[1] == f"only in {log}: 1 record"
    assert said[2] == f"         0  {log}:0  same"
    assert f"only in {other}: 1 record" in said[3]


def test_what_is_not_settled_is_not_compared_and_that_is_said(ask: Command, log: str) -> None:
    ask("append", log, "a")
    ask("fork", log, "plan", "--promotable")
    ask("append", log, "b")
    said = ask("diff", log, f"{log}--plan")
    assert said.err == f"{log} is compared below position 1: {log}--plan is undecided\n"
    assert said.out.startswith("the same up to position 1 (not included)\n")
    assert ask("diff", log, f"{log}--plan", "-o", "json").err == ""


def test_what_was_trimmed_is_not_comparable(ask: Command, log: str) -> None:
    ask("append", log, *"abcd")
    ask("fork", log, "f", "--severed")
    ask("trim", log, "--before", "2")
    found = ask("diff", log, f"{log}--f", "-o", "json").json
    assert (found["since"], found["shared"]) == (2, 4)
    assert found["b"]["not_comparable"] == [[0, 2]]
    said = ask("diff", log, f"{log}--f").out
    assert "the same from position 2 on, where the log that was trimmed begins" in said
    assert f"not comparable: 2 records of {log}--f, which {log} may have had and trimmed" in said


def test_a_promoted_fork_s_records_are_named_by_where_they_came_from(
    ask: Command, log: str
) -> None:
    ask("fork", log, "kept")
    ask("fork", log, "plan", "--promotable")
    ask("append", f"{log}--plan", "planned")
    ask("promote", f"{log}--plan")
    (record,) = ask("read", log, "-o", "json").lines
    assert record["origin"] == {"log": f"{log}--plan", "position": 0}
    other = ask("diff", f"{log}--kept", log).out
    assert "the same up to position 1" in other


def test_a_limit_below_nothing_is_a_mistake(ask: Command, log: str) -> None:
    assert "not in the range" in ask("diff", log, log, "-n", "-1", code=Exit.USAGE).err
