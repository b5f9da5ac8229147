"""Trees of forks, drawn for people and listed for programs."""

import pytest
from tests.commands import Command

from anabranch.cli.failure import Exit


@pytest.fixture
def forks(ask: Command, log: str) -> str:
    """A root with two forks, of which the first has one that is promotable, and a reason."""
    ask("append", log, "a", "b")
    ask("fork", log, "one")
    ask("fork", f"{log}--one", "deep", "--promotable", "--ttl", "1h", "--why", "to try\x1b[31m")
    ask("fork", log, "two", "--at", "1")
    return log


def test_each_log_stands_below_its_parent(ask: Command, forks: str) -> None:
    drawn = ask("tree", forks).out.splitlines()
    joined = "\n".join(drawn)
    assert f"├── {forks}--one  continuous at 2, tail 2, 0 own" in joined
    assert f"│   └── {forks}--deep  continuous at 2" in joined
    assert f"└── {forks}--two  severed at 1, tail 1, 0 own" in joined
    assert "promotable" in joined
    assert "squashed in" in joined
    assert "(to try\\x1b[31m)" in joined, "a stranger's reason doesn't colour the terminal"


def test_what_holds_a_log_up_stands_below_it(ask: Command, forks: str) -> None:
    drawn = ask("tree", f"{forks}--one").out.splitlines()
    assert drawn[0].startswith(f"{forks}--one  ")
    assert drawn[1] == f"reads below 2: {forks}--deep is undecided"


def test_programs_get_a_flat_list_with_parents(ask: Command, forks: str) -> None:
    (tree,) = ask("tree", forks, "-o", "json").json
    assert [(each["name"], each["parent"], each["depth"]) for each in tree["logs"]] == [
        (forks, None, 0),
        (f"{forks}--one", forks, 1),
        (f"{forks}--deep", f"{forks}--one", 2),
        (f"{forks}--two", forks, tree["logs"][3]["depth"]),
    ]
    (part,) = ask("tree", f"{forks}--one", "-o", "json").json
    assert part["root"] == forks
    assert [each["name"] for each in part["logs"]] == [f"{forks}--one", f"{forks}--deep"]


def test_all_trees_are_shown_where_none_is_named(ask: Command, forks: str, ticks: str) -> None:
    roots = [each["root"] for each in ask("tree", "-o", "json").json]
    assert {forks, ticks} <= set(roots)
    assert len(set(roots)) == len(roots)


def test_a_tree_of_a_log_that_is_not_there(ask: Command) -> None:
    assert "no log nowhere" in ask("tree", "nowhere", code=Exit.REFUSED).err
