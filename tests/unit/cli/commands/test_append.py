"""What goes in by arguments, lines, files and JSON, and what `append` says of it."""

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.commands import Command
from tests.unit.cli.records import RECORDS, Given, fresh_name

import anabranch as library
from anabranch import testing
from anabranch.cli.failure import Exit

WITH_FIXTURES = settings(
    max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
NO_NEWLINE = st.binary(max_size=8).map(lambda text: text.replace(b"\n", b"."))


def stored(service: testing.Server, log: str) -> list[Given]:
    """What the log holds, by the Python client."""
    with library.connect(service.url) as found:
        return [
            Given(each.value, each.key, tuple(each.headers), each.timestamp)
            for each in found.log(log).read()
        ]


@WITH_FIXTURES
@given(st.lists(RECORDS, max_size=6))
def test_json_lines_become_the_records_that_they_describe(
    ask: Command, service: testing.Server, records: list[Given]
) -> None:
    name = fresh_name()
    ask("log", "create", name)
    lines = "".join(f"{each.line}\n\n" for each in records)
    ask("append", name, "--json", stdin=lines.encode())
    assert stored(service, name) == records


@WITH_FIXTURES
@given(st.lists(RECORDS, min_size=1, max_size=6), st.integers(1, 7))
def test_reading_as_json_and_appending_that_copies_a_log(
    ask: Command, service: testing.Server, records: list[Given], batch: int
) -> None:
    first, second = fresh_name(), fresh_name()
    for name in (first, second):
        ask("log", "create", name)
    ask("append", first, "--json", stdin="\n".join(each.line for each in records).encode())
    read = ask("read", first, "-o", "json").bytes
    ask("append", second, "--json", "--batch", str(batch), stdin=read)
    assert stored(service, second) == stored(service, first) == records


@WITH_FIXTURES
@given(
    st.lists(
        st.tuples(st.none() | NO_NEWLINE.map(lambda key: key.replace(b"=>", b"")), NO_NEWLINE),
        max_size=6,
    )
)
def test_reading_and_appending_with_a_delimiter_copies_keys_and_values(
    ask: Command, service: testing.Server, pairs: list[tuple[bytes | None, bytes]]
) -> None:
    """But for a value without a key that holds the delimiter itself."""
    pairs = [(key, value) for key, value in pairs if key is not None or b"=>" not in value]
    # A key's last byte and the delimiter's first may be the same two that the delimiter is.
    pairs = [(key, value) for key, value in pairs if key is None or b"=>" not in key + b"="]
    first, second = fresh_name(), fresh_name()
    for name in (first, second):
        ask("log", "create", name)
    with library.connect(service.url) as found:
        log = found.log(first)
        for key, value in pairs:
            log.append(value, key=key)
    ask("append", second, "-K=>", stdin=ask("read", first, "-K=>").bytes)
    assert [(each.key, each.value) for each in stored(service, second)] == pairs


@WITH_FIXTURES
@given(st.lists(NO_NEWLINE, max_size=8), st.booleans(), st.integers(1, 5))
def test_lines_are_what_stands_between_newlines(
    ask: Command, service: testing.Server, lines: list[bytes], ended: bool, batch: int
) -> None:
    name, content = fresh_name(), b"\n".join(lines) + b"\n" * (ended and bool(lines))
    ask("log", "create", name)
    ask("append", name, "--lines", "--batch", str(batch), stdin=content)
    expected = content.removesuffix(b"\n").split(b"\n") if content else []
    assert [each.value for each in stored(service, name)] == expected


@pytest.mark.parametrize("keyed", [True, False])
def test_lines_under_a_request_id_are_the_same_records_as_without(
    ask: Command, service: testing.Server, log: str, keyed: bool
) -> None:
    options = ("-K:",) if keyed else ("--lines",)
    lines = b"a:1\n\nb:2\n:\nno end"
    ask("append", log, *options, stdin=lines)
    without = [each[:3] for each in stored(service, log)]
    ask("append", log, *options, "--request-id", "once", stdin=lines)
    ask("append", log, *options, "--request-id", "once", stdin=lines)
    assert [each[:3] for each in stored(service, log)] == [*without, *without]


def test_what_was_appended_is_said_with_its_place_and_size(ask: Command, log: str) -> None:
    assert ask("append", log, "abc").out == f"appended 1 record (3 B) to {log} at 0\n"
    assert ask("append", log, "a", "b").out == f"appended 2 records (2 B) to {log} at 1..2\n"
    said = ask("append", log, "xyz", "--key", "key", "-o", "json").json
    assert said == {
        "log": log,
        "count": 1,
        "bytes": 6,
        "position": 3,
        "last": 3,
        "receipt": None,
        "last_receipt": None,
    }


def test_nothing_to_append_is_said_and_is_no_mistake(ask: Command, log: str) -> None:
    for options in ((), ("--request-id", "once")):
        assert ask("append", log, "--lines", *options).out == "nothing to append\n"
        said = ask("append", log, "--lines", *options, "-o", "json").json
        assert (said["count"], said["position"], said["last"]) == (0, None, None)
    ask("append", log, stdin=b"")
    assert ask("read", log, "-o", "json").json["value"] == "", "a whole stdin is one record"


def test_positions_that_are_withheld_come_as_receipts(ask: Command, log: str) -> None:
    ask("fork", log, "plan", "--promotable")
    one = ask("append", log, "a").out.splitlines()
    assert one[0].endswith("its position is withheld until its forks are decided")
    assert one[1].startswith("receipt ")
    two = ask("append", log, "b", "c").out.splitlines()
    assert "positions are withheld" in two[0]
    said = ask("append", log, "d", "e", "-o", "json").json
    assert (said["position"], said["last"]) == (None, None)
    assert said["receipt"] != said["last_receipt"]
    assert two[1].startswith("receipts ")


def test_files_are_taken_in_their_order_and_stdin_among_them(
    ask: Command, service: testing.Server, log: str, tmp_path: Path
) -> None:
    for name, content in (("a", b"1\n2\n"), ("b", b"3")):
        (tmp_path / name).write_bytes(content)
    files = ("-f", str(tmp_path / "a"), "-f", "-", "-f", str(tmp_path / "b"))
    ask("append", log, *files, stdin=b"of stdin")
    ask("append", log, *files, "--lines", stdin=b"x\n")
    ask("append", log, *files, "--lines", "--request-id", "once", stdin=b"y\n")
    assert [each.value for each in stored(service, log)] == [
        *(b"1\n2\n", b"of stdin", b"3"),
        *(b"1", b"2", b"x", b"3"),
        *(b"1", b"2", b"y", b"3"),
    ]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("v", "--lines"), "give values, or files or lines, not both"),
        (("v", "-f", "-"), "give values, or files or lines, not both"),
        (("--json", "--key", "k"), "the lines themselves hold keys"),
        (("--json", "-Z"), "the lines themselves hold keys"),
        (("--key", "k", "-K:"), "give --key, which is for all records, or -K, not both"),
        (("v", "-H", "no equals sign"), "a header reads NAME=VALUE, not 'no equals sign'"),
        (("v", "-H", "=v"), "a header reads NAME=VALUE"),
        (("v", "-H", os.fsdecode(b"\xff=v")), "the name of a header is UTF-8"),
        (("--batch", "0"), "0 is not in the range 1<=x<=100000"),
        (("--compression", "brotli"), "'brotli' is not one of"),
        (("-f", "/nowhere"), "does not exist"),
        (("-K", ""), "a delimiter has at least one character"),
    ],
)
def test_options_that_do_not_go_together_are_told(
    ask: Command, log: str, arguments: tuple[str, ...], sentence: str
) -> None:
    assert sentence in ask("append", log, *arguments, code=Exit.USAGE).err
    assert ask("read", log).out == ""


def test_a_bad_line_is_named_with_what_was_appended_before_it(ask: Command, log: str) -> None:
    lines = b'{"value": "a"}\n\n{"value": "b", "colour": "red"}\n'
    said = ask("append", log, "--json", "-o", "json", stdin=lines, code=Exit.REFUSED).error
    assert said["facts"]["what"] == "line 3"
    assert said["message"].endswith("nothing was appended")
    said = ask("append", log, "--json", "--batch", "2", stdin=lines, code=Exit.REFUSED).err
    assert "1 record before it were appended" in said
    once = ("--json", "--request-id", "once")
    ask("append", log, *once, stdin=lines, code=Exit.REFUSED)
    assert ask("read", log, "--format", "raw").out == "a\n", "of a request id, all or none"


def test_records_of_a_belfast_log_go_to_the_shard_that_is_named(ask: Command, ticks: str) -> None:
    ask("append", ticks, "here", "--key", "of this test", "--shard", "shard-1")
    read = ask("read", ticks, "--key", "of this test", "-o", "json").lines
    assert [(each["value"], each["shard"]) for each in read] == [("here", "shard-1")]
    once = ("append", ticks, "once", "--shard", "shard-0", "--request-id", "of this test")
    assert ask(*once).out == ask(*once).out
    assert "no shard nine" in ask("append", ticks, "v", "--shard", "nine", code=Exit.REFUSED).err


def test_only_appends_to_a_belfast_log_name_a_shard(ask: Command, log: str, audit: str) -> None:
    for name, engine in ((log, "bolt"), (audit, "erwin")):
        said = ask("append", name, "v", "--shard", "shard-0", code=Exit.REFUSED).err
        assert f"{name} is a log of the {engine} engine, and only appends to belfast logs" in said
        assert said.endswith("leave out --shard\n")
