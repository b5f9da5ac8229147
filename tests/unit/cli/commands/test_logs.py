"""Root logs: made, listed, shown, limited, trimmed and deleted; for people and for programs."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.commands import Command
from tests.unit.cli.records import fresh_name

from anabranch.cli.failure import Exit
from anabranch.client.aio import Service
from anabranch.core.errors import Unavailable

NO_QUOTA = {
    "append_bytes_per_s": None,
    "append_records_per_s": None,
    "read_bytes_per_s": None,
    "burst_ms": 1_000,
}
OPTIONS = {
    "append_bytes_per_s": "--append-bytes",
    "append_records_per_s": "--append-records",
    "read_bytes_per_s": "--read-bytes",
}


def test_a_log_is_made_once_unless_that_is_fine(ask: Command) -> None:
    name = fresh_name()
    assert ask("log", "create", name).out == f"{name} is there, with 0 records\n"
    ask("append", name, "a", "b")
    assert "pass --if-missing" in ask("log", "create", name, code=Exit.REFUSED).err
    assert ask("log", "create", name, "--if-missing").out == f"{name} is there, with 2 records\n"
    other = ("log", "create", name, "--if-missing", "--engine", "belfast")
    assert "exists already" in ask(*other, code=Exit.REFUSED).err


@pytest.mark.parametrize(
    ("asked", "named"),
    [
        (("--mode", "st"), ("the mode st", "the mode m")),
        (("--durability", "fsync"), ("the durability fsync", "the durability memory")),
        (("--black-box", "kafka://k:1/t"), ("black box kafka://k:1/t", "without a black box")),
    ],
)
def test_an_erwin_log_that_promises_something_else_than_asked_is_not_the_same(
    ask: Command, audit: str, asked: tuple[str, str], named: tuple[str, str]
) -> None:
    again = ("log", "create", audit, "--engine", "erwin", "--if-missing")
    said = ask(*again, *asked, code=Exit.REFUSED).err
    assert all(each in said for each in named)
    assert f"{audit} is there" in ask(*again, "--mode", "m", "--durability", "memory").out
    assert f"{audit} is there" in ask(*again, "--shards", "1", "--sequencers", "1").out


def test_a_lazy_log_of_another_durability_than_asked_for_is_not_the_same(ask: Command) -> None:
    name = fresh_name()
    made = ("log", "create", name, "--append", "lazy", "--durability")
    ask(*made, "memory")
    said = ask(*made, "fsync", "--if-missing", code=Exit.REFUSED).err
    assert "the durability fsync" in said
    assert "the durability memory" in said
    ask(*made, "memory", "--if-missing")


@pytest.mark.parametrize("option", ["--shards", "--replicas", "--sequencers"])
def test_only_belfast_logs_are_made_of_parts(ask: Command, option: str) -> None:
    said = ask("log", "create", fresh_name(), option, "2", code=Exit.USAGE).err
    assert "--shards, --replicas and --sequencers are for --engine belfast" in said
    assert "0 is not in the range" in ask("log", "create", "x", option, "0", code=Exit.USAGE).err


@pytest.mark.parametrize("name", ["", ".a", "a.", "a b", "a/b", "a@b", "a--b", "x" * 300, "grün"])
def test_a_name_that_can_not_be_says_what_can(ask: Command, name: str) -> None:
    said = ask("log", "create", name, "-o", "json", code=Exit.REFUSED).error
    assert said["code"] in {"bad-name", "limit-exceeded", "bad-request"}
    assert ask("log", "list", name or "nothing", "-o", "json").out == ""


def test_a_log_is_described_in_json_with_every_field(ask: Command) -> None:
    name = fresh_name()
    ask("log", "create", name, "--why", "for a test")
    ask("append", name, "a", "b", "c")
    ask("trim", name, "--before", "1")
    shown = ask("log", "show", name, "-o", "json").json
    assert {key: shown.pop(key) > 0 for key in ("id", "created_at")} == {
        "id": True,
        "created_at": True,
    }
    broker = shown.pop("broker")
    assert shown == {
        "name": name,
        "kind": "root",
        "root": name,
        "parent": None,
        "fork_point": 0,
        "start": 1,
        "tail": 3,
        "settled": 3,
        "own_records": shown["own_records"],
        "promotable": False,
        "depth": 0,
        "forks": 0,
        "undecided": None,
        "append_blocked_by": None,
        "generation": 0,
        "address": shown["address"],
        "expires_at": None,
        "on_parent_delete": "orphan",
        "quota": None,
        "by": "tester",
        "why": "for a test",
        "owner": shown["owner"],
        "engine": "bolt",
        "settings": None,
        "front": None,
        "cursors": {},
    }
    assert isinstance(broker, str | None)


def test_a_log_is_described_for_people_without_what_it_lacks(ask: Command, log: str) -> None:
    def rows() -> dict[str, str]:
        lines = ask("log", "show", log).out.splitlines()
        return {name: rest.strip() for name, _, rest in (line.partition("  ") for line in lines)}

    bare = rows()
    assert (bare["name"], bare["kind"], bare["by"]) == (log, "root", "tester")
    assert bare["positions"] == "0 up to 0 (not included)"
    assert not bare.keys() & {"why", "parent", "forks", "held up", "quota", "cursors", "cluster"}
    ask("append", log, "a")
    ask("cursor", "set", log, "me", "1")
    ask("fork", log, "plan", "--promotable", "--ttl", "1h")
    full = rows()
    assert (full["forks"], full["cursors"]) == ("1", "me at 1")
    assert full["held up"] == f"reads below 1: {log}--plan is undecided"
    fork = ask("log", "show", f"{log}--plan").out
    assert f"{log} at 1" in fork
    assert "continuous, promotable" in fork
    assert "squashed in" in fork


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.dictionaries(
            st.sampled_from(list(OPTIONS)), st.none() | st.integers(1, 1 << 40), max_size=3
        ),
        max_size=4,
    )
)
def test_a_quota_keeps_what_is_not_given(
    ask: Command, changes: list[dict[str, int | None]]
) -> None:
    name = fresh_name()
    ask("log", "create", name)
    model: dict[str, Any] = dict(NO_QUOTA)
    for change in changes:
        options: list[str] = []
        for field, rate in change.items():
            options += [OPTIONS[field], "none" if rate is None else str(rate)]
        model |= change
        assert ask("log", "quota", name, *options, "-o", "json").json == model
    assert ask("log", "quota", name, "-o", "json").json == model


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--append-bytes", "1MiB/s"), "appends 1.0 MiB/s, bursts of 1 s"),
        (("--append-records", "500/s"), "appends 500 records/s, bursts of 1 s"),
        (("--read-bytes", "1.5KiB"), "reads 1.5 KiB/s, bursts of 1 s"),
        (("--burst", "250ms", "--read-bytes", "7"), "reads 7 B/s, bursts of 250 ms"),
    ],
)
def test_a_quota_is_told_in_words(
    ask: Command, log: str, options: tuple[str, ...], words: str
) -> None:
    assert ask("log", "quota", log).out == f"{log}: no quota\n"
    assert ask("log", "quota", log, *options).out == f"{log}: {words}\n"
    assert words in ask("log", "show", log).out


def test_an_append_over_its_quota_says_how_to_have_more(ask: Command, log: str) -> None:
    ask("log", "quota", log, "--append-bytes", "1", "--burst", "1s")
    ask("append", log, "the broker learns of it")
    ask("append", log, stdin=bytes(10_000))
    late = ask("append", log, "v", "--timeout", "200ms", code=Exit.BLOCKED).err
    assert f"`anabranch log quota {log}`" in late


def test_logs_are_listed_by_prefix_and_by_tree(ask: Command, log: str) -> None:
    ask("fork", log, "b")
    ask("fork", log, "a", "--promotable")
    names = [log, f"{log}--a", f"{log}--b"]
    for options in ((log,), ("--tree", log), (log[:-1], "--tree", log)):
        assert [each["name"] for each in ask("log", "list", *options, "-o", "json").lines] == names
    table = [line.split() for line in ask("log", "list", log).out.splitlines()]
    assert table[0] == ["NAME", "KIND", "TAIL", "OWN", "FORKS", "AGE", "HELD", "UP"]
    assert [row[0] for row in table[1:]] == names
    assert "is undecided" in ask("log", "list", log).out
    assert ask("log", "list", f"{log}--a", "-o", "json").lines[0]["promotable"]


def test_no_logs_are_told_in_words_for_people_and_by_nothing_for_programs(ask: Command) -> None:
    assert ask("log", "list", "zz").out == "there are no logs that begin with zz\n"
    assert ask("log", "list", "zz", "-o", "json").out == ""


def test_a_tree_that_is_not_there_is_told(ask: Command, log: str) -> None:
    for options in ((), ("-o", "json")):
        said = ask("log", "list", "--tree", "zz", *options, code=Exit.REFUSED)
        assert "no log zz" in said.err
    assert "no logs that begin with zz" in ask("log", "list", "zz", "--tree", log).out


@pytest.mark.parametrize(
    "words", [("tree", ""), ("top", ""), ("log", "show", ""), ("status", ""), ("read", "")]
)
def test_an_empty_name_is_refused_and_not_taken_for_none(
    ask: Command, words: tuple[str, ...]
) -> None:
    assert "name: it is empty" in ask(*words, code=Exit.REFUSED).err


def test_a_log_with_forks_goes_only_by_force(ask: Command, log: str) -> None:
    ask("fork", log, "one")
    ask("fork", log, "kept", "--severed")
    refused = ask("log", "delete", log, code=Exit.REFUSED).err
    assert "has 2 forks: squash them first, or pass --force" in refused
    assert ask("log", "delete", log, "--force").out == f"{log} is deleted\n"
    assert [each["name"] for each in ask("log", "list", log, "-o", "json").lines] == [
        f"{log}--kept"
    ]
    gone = ask("log", "delete", log, code=Exit.REFUSED).err
    assert gone == f"error: {log} was deleted, and its records are gone\n"
    assert (
        "was squashed (its root was deleted)" in ask("read", f"{log}--one", code=Exit.REFUSED).err
    )


def test_a_log_that_nothing_serves_can_be_deleted(
    ask: Command, log: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def opened(self: Service, name: str) -> None:
        raise Unavailable(f"log {name}", "nothing serves it")

    monkeypatch.setattr(Service, "log", opened)
    assert ask("log", "delete", log).out == f"{log} is deleted\n"
    assert ask("log", "list", log).out == f"there are no logs that begin with {log}\n"


def test_a_fork_is_squashed_and_not_deleted(ask: Command, log: str) -> None:
    ask("fork", log, "one")
    refused = ask("log", "delete", f"{log}--one", code=Exit.REFUSED).err
    assert f"`anabranch squash {log}--one`" in refused
    refused = ask("squash", log, code=Exit.REFUSED).err
    assert f"`anabranch log delete {log}`" in refused


def test_trimming_never_goes_back(ask: Command, log: str) -> None:
    ask("append", log, *"abcde")
    assert ask("trim", log, "--before", "3").out == f"{log} now begins at 3\n"
    assert ask("trim", log, "--before", "2", "-o", "json").json["start"] == 3
    assert ask("trim", log, "--before", "5").out == f"{log} now begins at 5\n"
    beyond = ask("trim", log, "--before", "6", "-o", "json", code=Exit.REFUSED).error
    assert (beyond["code"], beyond["facts"]["last"]) == ("out-of-range", 5)
    assert "Missing option '--before'" in ask("trim", log, code=Exit.USAGE).err


def test_a_belfast_log_shows_what_it_is_made_of(ask: Command, ticks: str) -> None:
    shown = ask("log", "show", ticks).out
    assert "2, of 1 replica each" in shown
    assert "this service" in shown
    assert "positions" not in shown
    described = ask("log", "show", ticks, "-o", "json").json
    assert (described["engine"], described["settings"]["shards"]) == ("belfast", 2)
