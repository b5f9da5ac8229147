"""How a log of any engine is doing, and how fast logs grow."""

import pytest
from msgspec.structs import replace
from tests.commands import Command

from anabranch.cli.failure import Exit
from anabranch.client.erwin_log import ErwinLog
from anabranch.core.sequencing.protocol.messages import SequencingStatus


def test_status_of_a_bolt_log_is_what_show_shows(ask: Command, log: str) -> None:
    ask("append", log, "a")
    for options in ((), ("-o", "json")):
        shown = (ask(*words, log, *options).out for words in (("status",), ("log", "show")))
        status, show = (
            [line for line in text.splitlines() if "age " not in line] for text in shown
        )
        assert status == show


def test_status_of_a_belfast_log_asks_its_machines(ask: Command, ticks: str) -> None:
    status = ask("status", ticks, "-o", "json").json
    assert {each["name"] for each in status["status"]["shards"]} == {"shard-0", "shard-1"}
    assert "status" not in ask("log", "show", ticks, "-o", "json").json
    tables = ask("status", ticks).out.split("\n\n")
    assert [part.split()[0] for part in tables] == ["name", "LEADER", "SHARD"]
    assert "LEADER" not in ask("log", "show", ticks).out


def test_top_shows_a_log_and_its_forks_fastest_first(ask: Command, log: str) -> None:
    ask("fork", log, "f")
    seen = ask("top", log, "--count", "2", "--interval", "1ms", "-o", "json").lines
    assert [(each["name"], each["records_per_s"]) for each in seen] == [
        (log, None),
        (f"{log}--f", None),
        (log, 0),
        (f"{log}--f", 0),
    ]
    rows = ask("top", log, "--count", "1").out.splitlines()
    assert rows[0].split()[:4] == ["NAME", "KIND", "RECORDS/s", "TAIL"]
    assert [row.split()[:4] for row in rows[1:]] == [
        [log, "root", "-", "0"],
        [f"{log}--f", "continuous", "-", "0"],
    ]


def test_top_of_a_belfast_log_goes_shard_by_shard(ask: Command, ticks: str) -> None:
    seen = ask("top", ticks, "--count", "2", "--interval", "1ms", "-o", "json").lines
    assert [len(each["shards"]) for each in seen] == [2, 2]
    shown = ask("top", ticks, "--count", "1").out
    assert {line.split()[0] for line in shown.splitlines()[-2:]} == {"shard-0", "shard-1"}


def test_status_of_an_erwin_log_asks_its_leader(ask: Command, audit: str) -> None:
    status = ask("status", audit, "-o", "json").json
    assert status["settings"]["durability"] == "memory"
    assert [each["name"] for each in status["status"]["shards"]] == ["shard-0", "shard-1"]
    assert len(status["status"]["members"]) == 2
    tables = ask("status", audit).out.split("\n\n")
    assert [part.split()[0] for part in tables] == ["name", "LEADER", "SHARD"]
    assert "in memories" in tables[1]
    shown = ask("log", "show", audit).out
    assert "memory" in shown
    assert "LEADER" not in shown


def test_top_of_an_erwin_log_goes_shard_by_shard(ask: Command, audit: str) -> None:
    seen = ask("top", audit, "--count", "2", "--interval", "1ms", "-o", "json").lines
    assert [len(each["shards"]) for each in seen] == [2, 2]
    shown = ask("top", audit, "--count", "1").out
    assert {line.split()[0] for line in shown.splitlines()[-2:]} == {"shard-0", "shard-1"}
    assert audit in {each["name"] for each in ask("top", "--count", "1", "-o", "json").lines}


def test_top_says_what_keeps_an_erwin_log_s_shards_from_writing(
    ask: Command, audit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    why = "shard-0: Kafka topic audit-0 at kafka:9092 failed: it doesn't answer"
    seen = ErwinLog.status

    async def held_up(log: ErwinLog, **asked: float | None) -> SequencingStatus:
        return replace(await seen(log, **asked), held_up=why)

    monkeypatch.setattr(ErwinLog, "status", held_up)
    for words in (("top", audit), ("top",), ("status", audit)):
        assert why in ask(*words, *(("--count", "1") if words[0] == "top" else ())).out
    logs = {each["name"]: each for each in ask("top", "--count", "1", "-o", "json").lines}
    assert logs[audit]["held_up"] == why
    assert "obstacle" not in logs[audit]


def test_top_shows_the_other_logs_beside_one_that_is_not_available(ask: Command, log: str) -> None:
    url = "anabranch://127.0.0.1:9/away"
    away = f"{log}-away"
    ask("log", "create", away, "--engine", "erwin", "--black-box", url)
    seen = {each["name"]: each for each in ask("top", "--count", "1", "-o", "json").lines}
    assert seen[log]["tail"] == 0
    assert "obstacle" not in seen[log]
    assert seen[away]["tail"] is None
    assert away in seen[away]["obstacle"]
    row = next(each for each in ask("top", "--count", "1").out.splitlines() if away in each)
    assert row.split()[:4] == [away, "erwin", "-", "-"]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--count", "0"), "0 is not in the range x>=1"),
        (("--interval", "1"), "is no duration"),
        (("--interval",), "requires an argument"),
    ],
)
def test_mistakes_are_told(ask: Command, options: tuple[str, ...], sentence: str) -> None:
    assert sentence in ask("top", *options, code=Exit.USAGE).err


def test_a_log_that_is_not_there(ask: Command) -> None:
    for words in (("status", "nowhere"), ("top", "nowhere", "--count", "1")):
        assert "`anabranch log list`" in ask(*words, code=Exit.REFUSED).err
