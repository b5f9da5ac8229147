"""An Erwin log on the command line: created, appended to, read, followed, trimmed."""

from pathlib import Path

import pytest
from tests.commands import Command

from anabranch.cli.failure import Exit


def values(ask: Command, *arguments: str) -> list[str]:
    return [each["value"] for each in ask(*arguments, "-o", "json").lines]


def test_what_is_appended_is_said_with_its_positions_and_read(ask: Command) -> None:
    ask("log", "create", "ledger", "--engine", "erwin", "--shards", "2")
    assert "appended 2 records (2 B) to ledger at 0..1" in ask("append", "ledger", "a", "b").out
    done = ask("append", "ledger", "c", "-o", "json").json
    assert (done["position"], done["last"], done["receipt"]) == (2, 2, None)
    assert values(ask, "read", "ledger") == ["a", "b", "c"]
    assert values(ask, "tail", "ledger", "-n", "2") == ["b", "c"]
    assert [each["position"] for each in ask("read", "ledger", "-o", "json").lines] == [0, 1, 2]
    ask("trim", "ledger", "--before", "1")
    assert values(ask, "read", "ledger") == ["b", "c"]


def test_lines_of_a_file_are_appended_in_order(ask: Command, tmp_path: Path) -> None:
    ask("log", "create", "lines", "--engine", "erwin", "--mode", "st", "--sequencers", "2")
    file = tmp_path / "lines"
    file.write_text("".join(f"{n}\n" for n in range(300)))
    ask("append", "lines", "--lines", "-f", str(file), "--batch", "100")
    read = values(ask, "read", "lines")
    assert read == [str(n) for n in range(300)]


def test_a_request_is_done_once(ask: Command) -> None:
    ask("log", "create", "once", "--engine", "erwin")
    for _ in range(2):
        done = ask("append", "once", "a", "b", "--request-id", "r1", "-o", "json").json
        assert (done["count"], done["position"], done["last"]) == (2, 0, 1)
    assert ask("append", "once", "c", "-o", "json").json["position"] == 2


def test_a_log_is_created_as_it_was_asked_for(ask: Command) -> None:
    options = ("--mode", "st", "--durability", "memory", "--sequencers", "3", "--replicas", "2")
    made = ask("log", "create", "fast", "--engine", "erwin", *options, "-o", "json").json
    expected = {"mode": "st", "durability": "memory", "sequencers": 3, "replicas": 2, "shards": 1}
    assert {name: made["settings"][name] for name in expected} == expected
    shown = ask("log", "show", "fast").out
    assert "st" in shown.split()
    plain = ask("log", "create", "plain", "--engine", "erwin", "-o", "json").json
    assert (plain["settings"]["mode"], plain["settings"]["durability"]) == ("m", "fsync")


@pytest.mark.parametrize("option", [("--mode", "st"), ("--durability", "memory")])
@pytest.mark.parametrize("engine", ["bolt", "belfast"])
def test_a_mode_and_a_durability_are_erwins(
    ask: Command, engine: str, option: tuple[str, str]
) -> None:
    refused = ask("log", "create", "x", "--engine", engine, *option, code=Exit.USAGE)
    assert "--mode and --durability are for --engine erwin" in refused.err
