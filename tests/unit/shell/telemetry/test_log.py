"""A line of the log is one line, is read back, and moves nobody's cursor, whatever it holds."""

import io
import json
import threading
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch.shell.telemetry.log import Log, LogFormat

AT = 1_700_000_000_123_456_789

texts = st.one_of(
    st.text(max_size=20),
    st.text(st.characters(codec=None), max_size=9),
    st.sampled_from(
        ["a\nINFO forged", "\x1b[2J", "\x9b2J", "\u2028", "\u202egnp", "\udcff", 'a "b"', "a=b", ""]
    ),
)
details = st.dictionaries(
    st.sampled_from(["log", "who", "path"]),
    texts | st.integers() | st.booleans() | st.none() | st.floats(),
    max_size=3,
)


def written(form: LogFormat, level: str, event: str, **details: Any) -> str:
    stream = io.StringIO()
    getattr(Log(lambda: AT, form, stream), level)(event, **details)
    return stream.getvalue()


@given(details)
def test_a_line_for_people_is_one_printable_line(details: dict[str, Any]) -> None:
    told = written(LogFormat.HUMAN, "info", "it happened", **details)
    (line,) = told.splitlines()
    assert line.isprintable()
    assert line.startswith("22:13:20 info    it happened")
    for key in details:
        assert f" {key}=" in line


@given(details)
def test_a_line_for_machines_is_one_document_that_is_read_back(details: dict[str, Any]) -> None:
    told = written(LogFormat.JSON, "warning", "it happened", **details)
    assert told.count("\n") == 1
    read = json.loads(told)
    assert read["at"] == "2023-11-14T22:13:20.123+00:00"
    assert (read["level"], read["event"]) == ("warning", "it happened")
    for key, value in details.items():
        if isinstance(value, float):
            continue  # not a number is null
        assert read[key] == value


@given(texts)
def test_a_value_with_spaces_or_quotes_is_told_apart_from_what_follows_it(value: str) -> None:
    line = written(LogFormat.HUMAN, "error", "it", who=value, log="orders")
    shown = line.partition("who=")[2].removesuffix(" log=orders\n")
    assert (shown if value.isalnum() else json.loads(shown)) == value


def test_lines_of_several_threads_are_not_mixed() -> None:
    class Stream(io.StringIO):
        def write(self, text: str) -> int:
            pieces.append(text)
            return len(text)

    pieces: list[str] = []
    log = Log(lambda: AT, LogFormat.JSON, Stream())
    threads = [
        threading.Thread(target=lambda n=n: [log.info("it", who=n) for _ in range(50)])
        for n in range(4)
    ]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert len(pieces) == 200, "a line is written in one piece"
    assert all(msgspec.json.decode(piece)["event"] == "it" for piece in pieces)


@pytest.mark.parametrize("form", LogFormat)
def test_what_is_written_is_seen_at_once(form: LogFormat) -> None:
    """Whoever is killed next has said it."""

    class Stream(io.StringIO):
        flushed = 0

        def flush(self) -> None:
            self.flushed += 1

    stream = Stream()
    Log(lambda: AT, form, stream).info("it")
    assert stream.flushed == 1
