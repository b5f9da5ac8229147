"""The same commands work on a log of any engine, and say so where one doesn't."""

import json
import signal
import subprocess

import pytest
from tests.commands import Command
from tests.integration.cli_server import ANABRANCH, Server

from anabranch.cli.failure import Exit

A_MOMENT_S = 60


@pytest.fixture(scope="module")
def ticks(server: Server) -> str:
    """A Belfast log of two shards."""
    made = [*ANABRANCH, "log", "create", "ticks", "--engine", "belfast", "--shards", "2"]
    said = subprocess.run(made, env=server.environment, check=True, capture_output=True, text=True)
    assert said.stdout == "ticks is there, with 2 shards\n"
    return "ticks"


def test_records_of_a_belfast_log_go_in_and_come_out(anabranch: Command, ticks: str) -> None:
    made = anabranch("append", ticks, "one", "two", "--key", "k", "-o", "json").json
    assert (made["count"], made["receipt"]) == (2, None)
    assert made["last"] == made["position"] + 1
    shard = ("--shard", "shard-1")
    lines = b"k:three\nno key\n"
    anabranch("append", ticks, "-K:", *shard, "-H", "h=x", stdin=lines)
    read = anabranch("read", ticks, "-o", "json").lines
    assert [(each["key"], each["value"]) for each in read] == [
        ("k", "one"),
        ("k", "two"),
        ("k", "three"),
        (None, "no key"),
    ]
    assert {each["shard"] for each in read[2:]} == {"shard-1"}
    assert "origin" not in read[0]
    assert read[2]["headers"] == [{"name": "h", "value": "x"}]
    assert anabranch("read", ticks, "--key", "k", "--grep", "^t", "-K:").out == "k:two\nk:three\n"
    assert "shard-1  no key" in anabranch("read", ticks, "--origins", "--grep", "no key").out
    last = anabranch("tail", ticks, "-n", "2", "--format", "raw")
    assert last.out == "three\nno key\n", "no-ops between records don't count"
    anabranch("log", "create", "copy-of-ticks")
    anabranch(
        "append", "copy-of-ticks", "--json", stdin=anabranch("read", ticks, "-o", "json").bytes
    )
    assert len(anabranch("read", "copy-of-ticks", "-o", "json").lines) == 4


def test_a_belfast_log_is_followed(anabranch: Command, server: Server, ticks: str) -> None:
    anabranch("append", ticks, "before")
    with subprocess.Popen(
        [*ANABRANCH, "tail", ticks, "-f", "-n", "1", "--speculative", "-o", "json"],
        env=server.environment,
        stdout=subprocess.PIPE,
    ) as following:
        assert following.stdout is not None
        events = (json.loads(line) for line in following.stdout)
        assert next(events)["value"] == "before"
        at = anabranch("append", ticks, "followed", "-o", "json").json["position"]
        came = next(each for each in events if each.get("value") == "followed")
        assert came["event"] == "deliver"
        assert came["speculative"] in {True, False}
        if came["speculative"]:
            assert any(each["event"] == "confirm" and each["up_to"] > at for each in events)
        following.send_signal(signal.SIGINT)
        following.wait(A_MOMENT_S)


def test_how_a_belfast_log_is_doing_is_shown(anabranch: Command, ticks: str) -> None:
    for shard in ("shard-0", "shard-1"):
        anabranch("append", ticks, "it is there", "--shard", shard)
    shown = anabranch("status", ticks).out
    assert "2, of 1 replica each" in shown
    assert "shard-1" in shown
    status = anabranch("status", ticks, "-o", "json").json
    assert (status["engine"], status["settings"]["shards"]) == ("belfast", 2)
    assert {each["name"] for each in status["status"]["shards"]} == {"shard-0", "shard-1"}
    assert "sequencers" in anabranch("log", "show", ticks).out
    listed = anabranch("log", "list", ticks).out.splitlines()[1].split()
    assert listed[:4] == [ticks, "belfast", "-", "-"]
    assert "RECORDS/s" in anabranch("top", ticks, "--count", "1").out
    seen = anabranch("top", "--count", "1", "-o", "json").lines
    assert ticks in {each["name"] for each in seen}
    for document in (status, anabranch("log", "show", ticks, "-o", "json").json):
        unknown = [document[each] for each in ("start", "tail", "settled", "own_records")]
        assert unknown == [None] * 4, "only its own nodes know"
    assert f"{ticks}  belfast log" in anabranch("tree", ticks).out
    assert "LAST POSITION" in anabranch("belfast", "windows", "--log", ticks).out


def test_a_request_id_of_a_belfast_log_goes_with_its_shard(anabranch: Command, ticks: str) -> None:
    append = ("append", ticks, "once", "--request-id", "k", "-o", "json")
    refused = anabranch(*append, code=Exit.REFUSED).error
    assert (refused["code"], "--shard" in refused["message"]) == ("wrong-engine", True)
    first = anabranch(*append, "--shard", "shard-0").json
    assert anabranch(*append, "--shard", "shard-0").json == first
    other = ("append", ticks, "twice", *append[3:], "--shard", "shard-0")
    assert anabranch(*other, code=Exit.REFUSED).error["code"] == "request-reused"


def test_a_belfast_log_is_trimmed(anabranch: Command, ticks: str) -> None:
    at = anabranch("append", ticks, "kept", "-o", "json").json["position"]
    assert anabranch("trim", ticks, "--before", str(at)).out == f"{ticks} now begins at {at}\n"
    assert anabranch("read", ticks, "-n", "1", "-o", "json").lines[0]["position"] == at


@pytest.mark.parametrize(
    "words",
    [
        ("fork", "ticks", "x"),
        ("promote", "ticks"),
        ("cursor", "set", "ticks", "me", "0"),
        ("log", "quota", "ticks", "--read-bytes", "1MiB/s"),
        ("diff", "ticks", "ticks"),
        ("read", "ticks", "--from", "-10m"),
    ],
)
def test_what_a_belfast_log_lacks_is_refused_with_a_sentence(
    anabranch: Command, ticks: str, words: tuple[str, ...]
) -> None:
    said = anabranch(*words, code=Exit.REFUSED).err
    assert "ticks" in said
    if words[0] not in ("log", "read"):
        assert "ticks is a log of the belfast engine" in said
        assert "only bolt logs have" in said


def test_shards_are_asked_of_logs_that_have_them(anabranch: Command, log: str) -> None:
    anabranch("log", "create", log)
    said = anabranch("belfast", "status", "--log", log, code=Exit.REFUSED).err
    assert "a log of the bolt engine, and this is only for belfast logs" in said
    said = anabranch("append", log, "a", "--shard", "s", code=Exit.REFUSED).err
    assert "leave out --shard" in said
    anabranch("log", "create", "x", "--shards", "2", code=Exit.USAGE)
    anabranch("log", "create", log, "--if-missing")
    other = ("log", "create", log, "--if-missing", "--engine", "belfast")
    assert "as a log of the bolt engine" in anabranch(*other, code=Exit.REFUSED).err


def test_rates_of_a_log_and_its_forks_are_shown(anabranch: Command, log: str) -> None:
    anabranch("log", "create", log)
    anabranch("fork", log, "x")
    anabranch("append", log, "a")
    seen = anabranch("top", log, "--count", "2", "--interval", "1ms", "-o", "json").lines
    assert [each["name"] for each in seen] == [log, f"{log}--x"] * 2
    assert [each["records_per_s"] for each in seen] == [None, None, 0, 0]
    assert "1" in anabranch("status", log).out
