"""Which records `read` prints, against a naive model of a log, and in every form."""

import re
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.commands import Command

import anabranch as library
from anabranch import testing
from anabranch.cli.failure import Exit

COUNT, START = 40, 7
KEYS = (None, b"eve", b"bob", b"")


@pytest.fixture(scope="module")
def numbered(service: testing.Server) -> str:
    """A log of records 0 to 39, of which those from 7 on are kept."""
    with library.connect(service.url) as found:
        log = found.create("numbered")
        for each in range(COUNT):
            log.append(b"%d apples" % each, key=KEYS[each % 4], headers={"n": b"h%d" % each})
        log.trim(START)
    return "numbered"


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    start=st.none() | st.integers(-2 * COUNT, COUNT),
    limit=st.none() | st.integers(1, 2 * COUNT),
    key=st.none() | st.sampled_from([b"eve", b"bob", b"", b"nobody"]),
    pattern=st.none() | st.sampled_from(["^1", "apples", "h2", "bob|eve", "5 a", "kiwis"]),
)
def test_what_is_asked_for_is_what_is_printed(
    ask: Command,
    numbered: str,
    start: int | None,
    limit: int | None,
    key: bytes | None,
    pattern: str | None,
) -> None:
    options: list[str] = []
    for name, option in (("--from", start), ("-n", limit), ("--grep", pattern)):
        options += [] if option is None else [name, str(option)]
    options += [] if key is None else ["--key", key.decode()]
    if start is not None and 0 <= start < START:
        said = ask("read", numbered, *options, "-o", "json", code=Exit.REFUSED).error
        assert said["facts"]["start"] == START
        return
    first = START if start is None else start if start >= 0 else max(START, COUNT + start)
    expected = [
        each
        for each in range(first, COUNT)
        if (key is None or KEYS[each % 4] == key) and _found(pattern, each)
    ][:limit]
    read = ask("read", numbered, *options, "-o", "json").lines
    assert [each["position"] for each in read] == expected
    assert [each["value"] for each in read] == [f"{each} apples" for each in expected]
    raw = ask("read", numbered, *options, "--format", "raw").out.splitlines()
    assert raw == [f"{each} apples" for each in expected]


def _found(pattern: str | None, number: int) -> bool:
    key = (KEYS[number % 4] or b"").decode()
    return pattern is None or any(
        re.search(pattern, text) for text in (f"{number} apples", key, f"h{number}")
    )


def test_text_shows_position_key_and_value(ask: Command, numbered: str) -> None:
    shown = ask("read", numbered, "--from", "8", "-n", "4").out.splitlines()
    assert shown == [
        "       8  8 apples",
        "       9  [eve]  9 apples",
        "      10  [bob]  10 apples",
        "      11  []  11 apples",
    ]
    assert ask("read", numbered, "--from", "9", "-n", "1", "--origins").out == (
        f"       9  {numbered}:9  [eve]  9 apples\n"
    )
    assert ask("read", numbered, "--from", "8", "-n", "2", "-K", "\\t").out == (
        "8 apples\neve\t9 apples\n"
    )


def test_json_names_every_field_of_a_record(ask: Command, numbered: str) -> None:
    (read,) = ask("read", numbered, "--from", "9", "-n", "1", "-o", "json").lines
    time = read.pop("timestamp")
    assert time > 0
    id = read.pop("id")
    assert id.endswith("-9")
    assert read == {
        "position": 9,
        "value": "9 apples",
        "key": "eve",
        "headers": [{"name": "n", "value": "h9"}],
        "encoding": "text",
        "origin": {"log": numbered, "position": 9},
    }


@pytest.mark.parametrize(
    ("content", "shown"),
    [
        (b"\x1b[31mred\x1b[0m", "\\x1b[31mred\\x1b[0m"),
        (b"a\nb\r\tc", "a\\nb\\r\\tc"),
        ("\u202eabc\u2066".encode(), "\\u202eabc\\u2066"),
        ("\x9b31m".encode(), "\\x9b31m"),
        (b"\xff\x00", "\\xff\\x00"),
        ("grün 日本".encode(), "grün 日本"),
        ("a\u00a0b\u2028".encode(), "a\\xa0b\\u2028"),
        (b"", ""),
    ],
)
def test_text_never_moves_the_cursor(
    ask: Command, service: testing.Server, log: str, content: bytes, shown: str
) -> None:
    with library.connect(service.url) as found:
        found.log(log).append(content, key=content)
    assert ask("read", log).out == f"       0  [{shown}]  {shown}\n"
    assert ask("read", log, "--format", "raw").bytes == content + b"\n"


def test_a_null_value_is_told_from_an_empty_one(ask: Command, log: str) -> None:
    ask("append", log, "-Z", "-K:", stdin=b"k:\n:v\n")
    ask("append", log, "")
    assert ask("read", log).out.splitlines() == ["       0  [k]  -", "       1  v", "       2  "]
    read = ask("read", log, "-o", "json").lines
    assert [(each["key"], each["value"]) for each in read] == [("k", None), (None, "v"), (None, "")]


@pytest.mark.parametrize("form", ["text", "json"])
def test_a_delimiter_is_for_bytes_alone(ask: Command, numbered: str, form: str) -> None:
    said = ask("read", numbered, "-K:", "--format", form, code=Exit.USAGE).err
    assert "leave out --format" in said
    ask("read", numbered, "-K:", "--format", "raw")


def test_what_is_held_up_is_counted_for_people_only(ask: Command, log: str) -> None:
    ask("append", log, "a")
    ask("fork", log, "plan", "--promotable")
    ask("append", log, "b", "c")
    said = ask("read", log)
    assert said.out == "       0  a\n"
    assert said.err == (
        f"not shown: 2 provisional records, while {log}--plan is undecided; "
        f"`anabranch tail {log} --speculative` shows such records\n"
    )
    assert ask("read", log, "-o", "json").err == ""
    assert ask("read", log, "-n", "1").err == said.err
    assert ask("read", f"{log}--plan").err == ""


def test_reading_begins_at_the_time_that_is_named(
    ask: Command, service: testing.Server, log: str
) -> None:
    times: list[Any] = []
    for name in "abc":
        times.append(service.advance(10))
        ask("append", log, name)

    def values(start: str) -> str:
        return ask("read", log, "--from", start, "--format", "raw").out.replace("\n", "")

    service.advance(10)
    for place, time in enumerate(times):
        assert values(time.isoformat()) == "abc"[place:]
    assert values("2000-01-01") == values("-100000d") == "abc"
    assert values("2999-01-01T00:00:00+01:00") == ""


def test_a_belfast_log_keeps_no_times(ask: Command, ticks: str) -> None:
    said = ask("read", ticks, "--from", "-1h", code=Exit.REFUSED).err
    assert "a log of the belfast engine doesn't keep when records came: give a position" in said
