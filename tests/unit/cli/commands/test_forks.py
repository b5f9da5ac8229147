"""Forks are made, promoted and squashed, and say what they were made of."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.commands import Command
from tests.unit.cli.records import fresh_name

from anabranch import testing
from anabranch.cli.failure import Exit


def raw(ask: Command, log: str) -> list[str]:
    return ask("read", log, "--format", "raw").out.split()


@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.sampled_from(["left", "right", "parent"]), max_size=10),
    st.sampled_from(["left", "right", None]),
)
def test_the_promoted_fork_is_what_its_parent_becomes(
    ask: Command, order: list[str], winner: str | None
) -> None:
    """Each fork has its own records among its parent's, in the order in which all were appended."""
    parent = fresh_name()
    ask("log", "create", parent)
    ask("append", parent, "first")
    for side in ("left", "right"):
        ask("fork", parent, side, "--promotable")
    names = {"left": f"{parent}--left", "right": f"{parent}--right", "parent": parent}
    for number, where in enumerate(order):
        ask("append", names[where], f"{where}-{number}")

    def expected(*sides: str) -> list[str]:
        each = [f"{where}-{n}" for n, where in enumerate(order) if where in (*sides, "parent")]
        return ["first", *each]

    for side in ("left", "right"):
        assert raw(ask, names[side]) == expected(side)
    assert raw(ask, parent) == ["first"], "the rest is provisional"
    if winner is None:
        for side in ("left", "right"):
            ask("squash", names[side])
        assert raw(ask, parent) == expected()
        return
    other = "left" if winner == "right" else "right"
    done = ask("promote", names[winner], "-o", "json").json
    assert done == {
        "into": parent,
        "fork_point": 1,
        "records": order.count(winner),
        "squashed": [names[other]],
        "cursors": [],
    }
    assert raw(ask, parent) == expected(winner)


def test_what_was_made_is_said(ask: Command, log: str) -> None:
    ask("append", log, "a", "b")
    said = ask("fork", log, "mine").out
    assert said.startswith(f"{log}--mine: continuous fork of {log} at 2, made in ")
    said = ask("fork", log, "try", "--promotable").out
    assert said.startswith(f"{log}--try: continuous, promotable fork of {log} at 2")
    said = ask("fork", log, "past", "--at", "1").out
    assert said.startswith(f"{log}--past: severed fork of {log} at 1")
    assert ask("squash", f"{log}--past").out == f"{log}--past is squashed\n"
    ask("append", f"{log}--try", "c")
    assert ask("promote", f"{log}--try").out == (
        f"{log} is now what {log}--try was: 1 record of its own from position 2 on\n"
    )


def test_a_fork_without_a_name_gets_one(ask: Command, log: str) -> None:
    made = [ask("fork", log, "-o", "json").json["name"] for _ in range(2)]
    assert len(set(made)) == 2
    assert all(name.startswith(f"{log}--") for name in made)


@pytest.mark.parametrize(
    ("options", "kind", "point"),
    [
        ((), "continuous", 3),
        (("--continuous",), "continuous", 3),
        (("--severed",), "severed", 3),
        (("--at", "2"), "severed", 2),
        (("--at", "2", "--severed"), "severed", 2),
        (("--at", "1h ago"), "severed", 0),
        (("--at", "2999-01-01"), "severed", 3),
    ],
)
def test_where_a_fork_begins(
    ask: Command, log: str, options: tuple[str, ...], kind: str, point: int
) -> None:
    ask("append", log, "a", "b", "c")
    made = ask("fork", log, "f", *options, "-o", "json").json
    assert (made["kind"], made["fork_point"], made["tail"]) == (kind, point, point)
    ask("append", log, "d")
    expected = ["a", "b", "c", "d"] if kind == "continuous" else ["a", "b", "c"][:point]
    assert raw(ask, f"{log}--f") == expected


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--continuous", "--at", "1"), "a continuous fork begins at the tail: leave out --at"),
        (("--promotable", "--at", "1"), "a severed fork can't be promotable"),
        (("--promotable", "--severed"), "a severed fork can't be promotable"),
        (("--at", "-3"), "neither a position nor a time"),
        (("--ttl", "soon"), "is no duration: write 90s, 10m, 1h30m or 250ms"),
        (("--on-parent-delete", "cry"), "'cry' is not one of"),
    ],
)
def test_options_that_contradict_each_other_are_told(
    ask: Command, log: str, options: tuple[str, ...], sentence: str
) -> None:
    assert sentence in ask("fork", log, "f", *options, code=Exit.USAGE).err
    assert len(ask("log", "list", log, "-o", "json").lines) == 1


@pytest.mark.parametrize("name", ["a b", "--x", "a--b", "x" * 300])
def test_a_forks_name_follows_the_rules(ask: Command, log: str, name: str) -> None:
    code = Exit.USAGE if name.startswith("--") else Exit.REFUSED
    ask("fork", log, name, code=code)
    assert len(ask("log", "list", log, "-o", "json").lines) == 1


def test_a_fork_lives_as_long_as_it_was_given(
    ask: Command, service: testing.Server, log: str
) -> None:
    made = ask("fork", log, "f", "--ttl", "1h30m", "-o", "json").json
    assert abs(made["expires_at"] - made["created_at"] - 5_400_000) < 60_000
    service.advance(5_000)
    assert ask("log", "show", f"{log}--f", "-o", "json").json["name"] == f"{log}--f"
    service.advance(5_000)
    ask("log", "show", f"{log}--f", code=Exit.REFUSED)


@pytest.mark.parametrize(("choice", "stays"), [("orphan", True), ("cascade", False)])
def test_a_severed_fork_stays_or_goes_with_its_parent(
    ask: Command, log: str, choice: str, stays: bool
) -> None:
    ask("append", log, "a")
    ask("fork", log, "f", "--severed", "--on-parent-delete", choice)
    ask("log", "delete", log, "--force")
    left = [each["name"] for each in ask("log", "list", log, "-o", "json").lines]
    assert left == [f"{log}--f"] * stays


def test_only_promotable_forks_are_promoted(ask: Command, log: str) -> None:
    ask("fork", log, "f")
    for name in (log, f"{log}--f"):
        said = ask("promote", name, "-o", "json", code=Exit.REFUSED).error
        assert said["code"] in {"not-promotable", "is-root"}


def test_a_fork_is_promoted_as_it_was_judged_or_not_at_all(ask: Command, log: str) -> None:
    ask("fork", log, "f", "--promotable")
    ask("append", f"{log}--f", "one", "two")
    seen = ask("log", "show", f"{log}--f", "-o", "json").json["own_records"]
    ask("append", f"{log}--f", "unseen")
    refused = ask("promote", f"{log}--f", "--expect-own", str(seen), code=Exit.REFUSED)
    assert "3 records of its own where 2 were expected" in refused.err
    assert f"`anabranch promote {log}--f --expect-own 3`" in refused.err
    ask("promote", f"{log}--f", "--expect-own", "-1", code=Exit.USAGE)
    told = ask("promote", f"{log}--f", "--expect-own", "3", "-o", "json").json
    assert told["records"] == 3


def test_a_fork_may_be_named_by_an_at_sign(ask: Command, log: str) -> None:
    ask("fork", log, "f")
    assert ask("append", f"{log}@f", "own").out.endswith("at 0\n")
    assert raw(ask, f"{log}--f") == ["own"]
    assert ask("squash", f"{log}@f", "-o", "json").json == {"squashed": f"{log}--f"}
