"""Records go in and come out as they are: keys, headers, bytes, nulls, times."""

import json
import os
import re
from pathlib import Path

import httpx
import pytest
from tests.commands import Command
from tests.integration.cli_server import Server

from anabranch.cli.failure import Exit

ALL_BYTES = bytes(range(256))


def http(server: Server, path: str) -> str:
    return f"http://{server.http}/v1/logs/{path}"


def test_a_key_is_split_off_at_the_first_delimiter(anabranch: Command, log: str) -> None:
    anabranch("log", "create", log)
    lines = b"eve:3 apples\nbob:1:2\nno key\n:empty key\nempty value:\n"
    assert "5 records" in anabranch("append", log, "-K:", stdin=lines).out
    read = anabranch("read", log, "-o", "json").lines
    assert [(each["key"], each["value"]) for each in read] == [
        ("eve", "3 apples"),
        ("bob", "1:2"),
        (None, "no key"),
        ("", "empty key"),
        ("empty value", ""),
    ]
    assert anabranch("read", log, "-K:").bytes == lines
    anabranch("append", log, "-K", "\\t", "-Z", "-H", "a=b", "k\tv", "\t")
    last = anabranch("read", log, "--from", "-2", "-o", "json").lines
    assert [(each["key"], each["value"], each["headers"]) for each in last] == [
        ("k", "v", [{"name": "a", "value": "b"}]),
        (None, None, [{"name": "a", "value": "b"}]),
    ]


@pytest.mark.parametrize("compression", ["none", "zstd"])
def test_what_is_read_as_json_can_be_appended_and_is_the_same(
    anabranch: Command, log: str, compression: str
) -> None:
    """Keys, headers, values, nulls, empty ones and times; positions, ids and origins are new."""
    made = [
        {"value": "40 apples"},
        {"value": None, "key": "", "headers": [{"name": "h", "value": None}]},
        {"value": "", "key": None, "headers": [{"name": "h", "value": ""}] * 2},
        {"value": "/wA=", "key": "AP8=", "encoding": "base64", "timestamp": 0},
        {"value": "grün\n\u2028\x00", "timestamp": "2026-01-31T12:00:00+01:00"},
    ]
    lines = "\n".join(map(json.dumps, made)).encode()
    anabranch("log", "create", log)
    anabranch("append", log, "--json", "--compression", compression, stdin=lines)
    first = anabranch("read", log, "-o", "json")
    anabranch("log", "create", f"{log}-copy")
    anabranch("append", f"{log}-copy", "--json", stdin=first.out.encode())
    copied = anabranch("read", f"{log}-copy", "-o", "json").lines
    kept = ("value", "key", "headers", "encoding", "timestamp")
    assert [[each[name] for name in kept] for each in copied] == [
        [each[name] for name in kept] for each in first.lines
    ]
    read = {each["position"]: each for each in first.lines}
    assert (read[1]["key"], read[1]["value"]) == ("", None)
    assert (read[2]["key"], read[2]["value"]) == (None, "")
    assert (read[3]["value"], read[3]["timestamp"]) == ("/wA=", 0)
    assert read[4]["timestamp"] == 1_769_857_200_000


def test_http_and_the_command_line_show_a_record_alike(
    anabranch: Command, server: Server, log: str
) -> None:
    anabranch("log", "create", log)
    raw = os.fsdecode(b"\xff=")
    anabranch("append", log, "a", os.fsdecode(b"\xfe"), "--key", raw, "-H", f"h={raw}")
    anabranch("append", log, "text", "--key", "k")
    ours = anabranch("read", log, "-o", "json").lines
    theirs = httpx.get(http(server, f"{log}/records")).json()["records"]
    assert ours == theirs
    assert [each["encoding"] for each in ours] == ["base64", "base64", "text"]
    shown = anabranch("log", "show", log, "-o", "json").json
    del shown["cursors"]
    assert shown == httpx.get(http(server, log)).json()
    tree = httpx.get(f"http://{server.http}/v1/tree/{log}").json()
    assert anabranch("tree", log, "-o", "json").json == [{"root": log, "logs": tree["logs"]}]


def test_bytes_that_are_not_text_pass_through_every_option(
    anabranch: Command, log: str, tmp_path: Path
) -> None:
    anabranch("log", "create", log)
    key = bytes(each for each in ALL_BYTES if each)
    anabranch("append", log, os.fsdecode(key), "--key", os.fsdecode(key))
    (tmp_path / "all").write_bytes(ALL_BYTES)
    anabranch("append", log, "-f", str(tmp_path / "all"), "-H", os.fsdecode(b"h=" + key))
    assert anabranch("read", log, "--format", "raw").bytes == key + b"\n" + ALL_BYTES + b"\n"
    assert anabranch("read", log, "--key", os.fsdecode(key), "--format", "raw").bytes == key + b"\n"
    found = anabranch("read", log, "--grep", os.fsdecode(b"^\x00\x01"[:1] + b"[\xfe]*\xff$"))
    assert found.out == ""


def test_records_are_found_by_key_and_pattern(anabranch: Command, log: str) -> None:
    anabranch("log", "create", log)
    lines = b"".join(b"%s:%d apples\n" % (who, n) for n in range(30) for who in (b"eve", b"bob"))
    anabranch("append", log, "-K:", stdin=lines)
    anabranch("append", log, "pears", "-H", "note=of eve")

    def values(*options: str) -> list[str]:
        return [each["value"] for each in anabranch("read", log, *options, "-o", "json").lines]

    assert values("--key", "eve") == [f"{n} apples" for n in range(30)]
    assert values("--key", "eve", "--grep", "^2. ") == [f"{n} apples" for n in range(20, 30)]
    assert values("--grep", "eve", "--from", "-2") == ["pears"]
    assert values("--key", "eve", "-n", "2", "--from", "10") == ["5 apples", "6 apples"]
    assert values("--key", "ev") == []
    last = anabranch("tail", log, "-n", "5", "--key", "bob", "-K:").out
    assert last == "bob:28 apples\nbob:29 apples\n"


def test_reading_begins_at_a_time(anabranch: Command, server: Server, log: str) -> None:
    anabranch("log", "create", log)
    anabranch("append", log, "a", "b")

    def values(*options: str) -> list[str]:
        return anabranch("read", log, "--format", "raw", *options).out.split()

    assert values("--from", "-1h") == values("--from", "1h ago") == ["a", "b"]
    assert values("--from", "2020-01-01T00:00:00Z") == ["a", "b"]
    assert values("--from", "2999-01-01T00:00:00Z") == []
    assert anabranch("tail", log, "--from", "-1h", "-n", "1").out.split() == ["0", "a", "1", "b"]
    anabranch("read", log, "--from", "soon", code=Exit.USAGE)


@pytest.mark.parametrize(
    "options",
    [
        ("--json", "--key", "k"),
        ("--json", "-H", "a=b"),
        ("--json", "-K:"),
        ("--json", "-Z"),
        ("--key", "k", "-K:"),
    ],
)
def test_options_that_contradict_each_other_are_refused(
    anabranch: Command, log: str, options: tuple[str, ...]
) -> None:
    said = anabranch("append", log, *options, stdin=b"{}", code=Exit.USAGE)
    assert "not both" in said.err or "--json the lines themselves" in said.err


def test_a_line_that_is_no_record_is_named_with_what_came_before(
    anabranch: Command, log: str
) -> None:
    anabranch("log", "create", log)
    lines = b'{"value": "a"}\n{"value": "b"}\n\n{"vlaue": "c"}\n'
    options = ("append", log, "--json", "-o", "json")
    error = anabranch(*options, stdin=lines, code=Exit.REFUSED).error
    assert error["facts"]["what"] == "line 4"
    assert error["message"].endswith("nothing was appended")
    error = anabranch(*options, "--batch", "1", stdin=lines, code=Exit.REFUSED).error
    assert error["message"].endswith("2 records before it were appended")
    assert re.findall(r"\w$", anabranch("read", log).out, re.MULTILINE) == ["a", "b"]
