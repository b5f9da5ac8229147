"""An Erwin log on the command line: created, appended to, read, followed, trimmed."""

from pathlib import Path

import pytest
from tests.commands import Command

import anabranch
from anabranch import testing
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


def test_a_black_box_is_shown_where_it_was_asked_for(ask: Command) -> None:
    url = "anabranch://127.0.0.1:9/boxed"
    made = ask("log", "create", "boxed", "--engine", "erwin", "--black-box", url, "-o", "json").json
    assert made["settings"]["black_box"] == url
    assert url in ask("log", "show", "boxed").out


_BLACK_BOX = ("--black-box", "kafka://127.0.0.1:9/x")


@pytest.mark.parametrize("option", [("--mode", "st"), ("--durability", "memory"), _BLACK_BOX])
@pytest.mark.parametrize("engine", ["bolt", "belfast"])
def test_a_mode_a_durability_and_a_black_box_are_erwins(
    ask: Command, engine: str, option: tuple[str, str]
) -> None:
    refused = ask("log", "create", "x", "--engine", engine, *option, code=Exit.USAGE)
    assert "--mode and --black-box are for --engine erwin" in refused.err
    assert "--durability for that and for --append lazy" in refused.err


def test_an_append_whose_position_comes_late_is_done_and_not_to_be_repeated(ask: Command) -> None:
    """Its shard waits for the black box, after the sequencers have made the record durable."""
    with testing.server() as box:
        with anabranch.connect(box.url) as service:
            service.create("votes")
        made = ("--engine", "erwin", "--black-box", f"{box.url}/votes")
        ask("log", "create", "votes", *made)
        ask("append", "votes", "before")
    append = ("append", "votes", "--timeout", "1s")
    done = ask(*append, "a", "-o", "json").json
    assert [done[field] for field in ("count", "position", "last", "receipt")] == [1, *[None] * 3]
    said = ask(*append, "b", "c").out
    assert "appended 2 records to votes: durable" in said
    assert "don't append them again" in said
    once = ask(*append, "d", "--request-id", "once", "-o", "json").json
    assert (once["count"], once["position"]) == (1, None)
    # What is ordered is shown, and then what is missing; its order isn't waited for twice.
    for verb in ("tail", "read"):
        shown = ask(verb, "votes", "--format", "raw", "--timeout", "1s", code=Exit.BLOCKED)
        assert shown.out == "before\n"
        assert "what lies from position 1 on is durable and not ordered yet" in shown.err
    ask("log", "delete", "votes")


def test_a_shard_that_is_not_there_is_told_without_another_engine_s_command(
    ask: Command, audit: str
) -> None:
    for verb in ("close-shard", "open-shard"):
        said = ask("erwin", verb, audit, "shard-9", code=Exit.REFUSED).err
        assert "there is no shard shard-9" in said
        assert "belfast" not in said
