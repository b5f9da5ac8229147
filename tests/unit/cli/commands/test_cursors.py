"""Cursors against a naive dictionary, and what becomes of them when a fork is promoted."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.commands import Command
from tests.unit.cli.records import fresh_name

from anabranch.cli.failure import Exit

TAIL = 4
STEPS = st.lists(
    st.tuples(st.sampled_from(["set", "delete"]), st.sampled_from("abc"), st.integers(0, TAIL)),
    max_size=8,
)


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(STEPS)
def test_cursors_are_a_dictionary(ask: Command, steps: list[tuple[str, str, int]]) -> None:
    log, model = fresh_name(), dict[str, int]()
    ask("log", "create", log)
    ask("append", log, *map(str, range(TAIL)))
    for verb, name, position in steps:
        if verb == "set":
            said = ask("cursor", "set", log, name, str(position), "-o", "json").json
            assert said == {"name": name, "position": position}
            model[name] = position
        else:
            said = ask("cursor", "delete", log, name, "-o", "json").json
            assert said == {"deleted": name}
            model.pop(name, None)
    assert ask("cursor", "list", log, "-o", "json").json == model
    for name, position in model.items():
        assert ask("cursor", "get", log, name).out == f"{position}\n"
    table = [line.split() for line in ask("cursor", "list", log).out.splitlines()[1:]]
    assert [row[:3] for row in table] == [
        [name, str(at), str(TAIL - at)] for name, at in sorted(model.items())
    ]


def test_none_is_said_in_words(ask: Command, log: str) -> None:
    assert ask("cursor", "list", log).out == f"{log} has no cursors\n"
    assert ask("cursor", "list", log, "-o", "json").json == {}
    refused = ask("cursor", "get", log, "me", "-o", "json", code=Exit.REFUSED).error
    assert f"{log} has none of this name: `cursor list {log}`" in refused["message"]
    assert ask("cursor", "delete", log, "me").out == "cursor me is deleted\n"


@pytest.mark.parametrize(
    ("choice", "left"), [(None, {"me": 2}), ("follow", {"me": 2}), ("stay", {})]
)
def test_a_forks_cursor_follows_or_ends_with_it(
    ask: Command, log: str, choice: str | None, left: dict[str, int]
) -> None:
    ask("fork", log, "f", "--promotable")
    ask("append", f"{log}--f", "a", "b")
    options = () if choice is None else ("--on-promote", choice)
    ask("cursor", "set", f"{log}--f", "me", "2", *options)
    done = ask("promote", f"{log}--f", "-o", "json").json
    assert done["cursors"] == list(left)
    assert ask("cursor", "list", log, "-o", "json").json == left


def test_what_may_still_move_can_not_be_kept(ask: Command, log: str) -> None:
    ask("append", log, "a")
    ask("fork", log, "f", "--promotable")
    ask("append", log, "b")
    ask("cursor", "set", log, "me", "1")
    refused = ask("cursor", "set", log, "me", "2", "-o", "json", code=Exit.REFUSED).error
    assert refused["facts"]["last"] == 1
    for wrong in ("-1", "x", "1.5"):
        assert "Error: " in ask("cursor", "set", log, "me", wrong, code=Exit.USAGE).err
    assert ask("cursor", "get", log, "me").out == "1\n"
