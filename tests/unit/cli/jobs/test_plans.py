"""Scan plans, listed and ended."""

from tests.commands import Command

import anabranch
from anabranch import testing
from anabranch.cli.failure import Exit


def test_plans_are_listed_and_ended(ask: Command, log: str, service: testing.Server) -> None:
    ask("append", log, "a")
    with anabranch.connect(service.url) as client:
        made = client.log(log, engine="bolt").plan_scan().description
    name = f"{made.id:016x}"
    listed = ask("plans", "-o", "json").json
    (found,) = (each for each in listed["plans"] if each["id"] == name)
    assert (found["name"], found["start"], found["end"]) == (log, 0, 1)
    assert found["began"] < found["expires"]
    assert (listed["held_objects"], listed["held_bytes"]) == (0, 0)
    assert any(line.split()[:4] == [name, log, "0", "1"] for line in ask("plans").out.splitlines())
    assert ask("plans", "end", name, "-o", "json").json == {"ended": name}
    refused = ask("plans", "end", name, "-o", "json", code=Exit.REFUSED).error
    assert (refused["code"], refused["facts"]["plan"]) == ("plan-ended", name)
    assert name not in ask("plans", "list").out


def test_garbage_is_erased_only_by_force(ask: Command, log: str, service: testing.Server) -> None:
    with anabranch.connect(service.url) as client:
        client.log(log, engine="bolt").plan_scan()
    assert "give --force" in ask("plans", "erase", code=Exit.USAGE).err
    assert ask("plans", "erase", "--force", "-o", "json").json["plans"] >= 1
    assert ask("plans", "-o", "json").json["plans"] == []
