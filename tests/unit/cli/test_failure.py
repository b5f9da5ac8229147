"""Whatever goes wrong has its exit code and a sentence, and never moves a terminal's cursor."""

import json
import os
import socket
from pathlib import Path

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.commands import Command

from anabranch import testing
from anabranch.cli.failure import Exit, advised, exit_code, run, show
from anabranch.cli.main import PROGRAM, cli
from anabranch.core.errors import (
    AnabranchError,
    BadRequest,
    DeadlineExceeded,
    StorageFull,
    Unavailable,
    UnknownLog,
)

RED = "\x1b[31mred"
NOT_UTF8 = os.fsdecode(b"\xff")
ODD_TEXTS = ("", " ", RED, "a\nb", "\r", "\x9b31m", "\u202eabc", NOT_UTF8, "x" * 300, "9" * 5_000)
NUMBERS = ("-1", "9" * 19, "9" * 30, "9" * 5_000, "1e5", "0x10", "1.5")
TIMES = (
    "-999999999999d",
    f"-{'9' * 400}s",
    "0001-01-01T00:00:00+10:00",
    "9999-12-31T23:59:59-10:00",
    "2026-13-01",
    "1h ago ago",
    *NUMBERS,
)
DURATIONS = ("9" * 400 + "s", "999999999999999d", "1h 1h", "s", *NUMBERS)
RATES = ("9" * 400, f"{'9' * 30}GiB", "0.1", "1KB", "GiB", *NUMBERS)
PATTERNS = ("(", "[", "\\", "*", "a{99999999999999}", "(" * 500 + ")" * 500)
DELIMITERS = ("", "\\", "\\x", "\\x4", "\\q", "\\" + NOT_UTF8)
COMMANDS = {
    "log create ?": ODD_TEXTS,
    "log show ?": ODD_TEXTS,
    "log list ?": ODD_TEXTS,
    "log list --tree ?": ODD_TEXTS,
    "log delete ?": ODD_TEXTS,
    "log quota LOG --append-bytes ?": RATES,
    "log quota LOG --append-records ?": RATES,
    "log quota LOG --burst ?": DURATIONS,
    "append LOG v -H ?": ODD_TEXTS,
    "append LOG v --request-id ?": ODD_TEXTS,
    "append LOG v --shard ?": ODD_TEXTS,
    "append LOG -K ?": DELIMITERS,
    "append LOG --batch ?": NUMBERS,
    "append LOG -f ?": ODD_TEXTS,
    "read LOG --from ?": TIMES,
    "read LOG -n ?": NUMBERS,
    "read LOG --grep ?": PATTERNS,
    "tail LOG --from ?": TIMES,
    "tail LOG -n ?": NUMBERS,
    "fork LOG ?": ODD_TEXTS,
    "fork LOG --at ?": TIMES,
    "fork LOG --ttl ?": DURATIONS,
    "fork LOG --why ?": ODD_TEXTS,
    "promote ?": ODD_TEXTS,
    "squash ?": ODD_TEXTS,
    "diff LOG ?": ODD_TEXTS,
    "trim LOG --before ?": NUMBERS,
    "cursor set LOG ? 0": ODD_TEXTS,
    "cursor set LOG c ?": NUMBERS,
    "cursor get LOG ?": ODD_TEXTS,
    "cursor delete LOG ?": ODD_TEXTS,
    "writer release LOG ?": ODD_TEXTS,
    "receipt redeem ?": ODD_TEXTS,
    "receipt show ?": ODD_TEXTS,
    "brokers drain ?": ODD_TEXTS,
    "brokers forget ?": ODD_TEXTS,
    "status ?": ODD_TEXTS,
    "tree ?": ODD_TEXTS,
    "tree LOG ?": ODD_TEXTS,
    "log list LOG --profile ?": ODD_TEXTS,
    "log list LOG --timeout ?": DURATIONS,
    "profile add ? --url anabranch://a:1": ODD_TEXTS,
    "profile add p --url anabranch://a:1 --token ?": ODD_TEXTS,
    "profile use ?": ODD_TEXTS,
    "profile remove ?": ODD_TEXTS,
    "fsck --data ?": (RED, NOT_UTF8, "/nowhere"),
    "completion ?": ODD_TEXTS,
    "?": ODD_TEXTS,
    "log ?": ODD_TEXTS,
}
"""What is tried in place of each command's question mark."""


def printable(text: str) -> bool:
    return all(each.isprintable() or each == "\n" for each in text)


@pytest.mark.parametrize("command", COMMANDS)
def test_no_text_ends_a_command_with_a_traceback_or_moves_the_cursor(
    ask: Command,
    capsysbinary: pytest.CaptureFixture[bytes],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    log: str,
    command: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    for text in COMMANDS[command]:
        words = {"?": text, "LOG": log}
        arguments = [words.get(each, each) for each in command.split()]
        left = run(cli, PROGRAM, arguments)
        said = capsysbinary.readouterr()
        assert left in set(Exit), arguments
        assert printable(said.out.decode() + said.err.decode()), arguments
        assert (left == Exit.OK) == (said.err == b""), arguments
        left = run(cli, PROGRAM, [*arguments, "-o", "json"])
        said = capsysbinary.readouterr()
        if left != Exit.OK:
            assert said.err.isascii()
            assert json.loads(said.err)["error"]["message"], arguments


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("log", "show", NOT_UTF8), r"'\udcff' isn't UTF-8"),
        (("append", "l", "v", "--request-id", NOT_UTF8), "Invalid value for '--request-id'"),
        (("fork", "l", "--at", "9" * 30), "is beyond the last position there can be"),
        (("read", "l", "--from", "9" * 5_000), f"'{'9' * 19}...' is beyond the last position"),
        (("read", "l", "--from", "-999999999999d"), "a time outside of the years 1 to 9999"),
        (("read", "l", "--grep", "a{99999999999999}"), "the repetition number is too large"),
        (("read", "l", "--grep", "(" * 500 + ")" * 500), "is nested too deeply"),
        (("log", "quota", "l", "--read-bytes", "9" * 400), "more than any rate can be"),
        (("log", "list", "--timeout", "9" * 400 + "s"), "is longer than any duration can be"),
        (("log", "list", "--token-file", NOT_UTF8), "isn't UTF-8"),
    ],
)
def test_a_text_that_can_not_be_is_refused_before_anybody_is_asked(
    anabranch: Command, arguments: tuple[str, ...], sentence: str
) -> None:
    assert sentence in anabranch(*arguments, code=Exit.USAGE).err
    assert sentence in anabranch(*arguments, "-o", "json", code=Exit.USAGE).error["message"]


def test_what_stands_behind_an_error_is_said_first(capsys: pytest.CaptureFixture[str]) -> None:
    late = DeadlineExceeded("append to orders", 3_000)
    late.__cause__ = StorageFull("the journal")
    show(late, as_json=False)
    first, second = capsys.readouterr().err.splitlines()
    assert first == f"error: {StorageFull('the journal').message}"
    assert second == f"  therefore: {late.message}"
    show(late, as_json=True)
    said = json.loads(capsys.readouterr().err)["error"]
    assert (said["code"], said["because"]) == (late.code, StorageFull("the journal").message)
    late.__cause__ = OSError("of no interest")
    show(late, as_json=False)
    assert capsys.readouterr().err == f"error: {late.message}\n"


def test_advice_to_try_again_is_given_once(capsys: pytest.CaptureFixture[str]) -> None:
    outer = Unavailable("the log", "its sequencers are silent")
    outer.__cause__ = Unavailable("node a", "it starts")
    show(outer, as_json=False)
    assert capsys.readouterr().err.count("try again") == 1


def test_an_error_is_told_in_commands_where_it_was_told_in_calls(
    capsys: pytest.CaptureFixture[str],
) -> None:
    show(UnknownLog("orders"), as_json=False)
    assert capsys.readouterr().err == (
        "error: there is no log orders: `anabranch log list` shows what there is\n"
    )


def test_advice_of_the_command_line_replaces_that_for_programs() -> None:
    late = DeadlineExceeded("append to orders", 3_000, "id-1")
    told = advised(late, "run it again")
    assert (type(told), told.facts["advice"]) == (DeadlineExceeded, "run it again")
    assert told.message.endswith("run it again")
    assert exit_code(told) == exit_code(late) == Exit.BLOCKED


@given(st.text(max_size=40), st.booleans())
def test_the_words_of_a_stranger_never_move_the_cursor(text: str, as_json: bool) -> None:
    with pytest.MonkeyPatch.context() as patched:
        lines: list[str] = []
        patched.setattr("builtins.print", lambda line, file: lines.append(line))
        show(BadRequest("a name", text), as_json=as_json)
        show(UnknownLog(text), as_json=as_json)
    assert all(map(str.isprintable, lines)) or as_json
    if as_json:
        assert json.loads(lines[0])["error"]["facts"]["reason"] == text
        assert all(map(str.isascii, lines))


@pytest.mark.parametrize(
    ("raised", "code"),
    [
        (KeyboardInterrupt(), Exit.INTERRUPTED),
        (click.Abort(), Exit.INTERRUPTED),
        (click.UsageError("no"), Exit.USAGE),
        (click.BadParameter("no"), Exit.USAGE),
        (BadRequest("a", "b"), Exit.REFUSED),
        (AnabranchError(reason="of another version"), Exit.REFUSED),
        (StorageFull("the journal"), Exit.BLOCKED),
    ],
)
def test_each_way_to_end_has_its_code(raised: BaseException, code: Exit) -> None:
    @click.command()
    def ends() -> None:
        raise raised

    assert run(ends, "ends", []) == code


@pytest.mark.parametrize(
    ("options", "variable", "json_wanted"),
    [
        ((), None, False),
        (("-o", "json"), None, True),
        (("-ojson",), None, True),
        (("--output", "json"), None, True),
        (("--output=json",), None, True),
        ((), "json", True),
        ((), "table", False),
        (("--output", "table"), "json", False),
    ],
)
def test_mistakes_are_told_in_the_form_that_was_asked_for(
    anabranch: Command,
    monkeypatch: pytest.MonkeyPatch,
    options: tuple[str, ...],
    variable: str | None,
    json_wanted: bool,
) -> None:
    if variable is not None:
        monkeypatch.setenv("ANABRANCH_OUTPUT", variable)
    said = anabranch("log", "lst", *options, code=Exit.USAGE).err
    assert said.startswith('{"error":') == json_wanted
    assert "Did you mean" in said


def test_a_service_that_is_not_there_is_named(anabranch: Command) -> None:
    nowhere = "anabranch://127.0.0.1:1"
    said = anabranch("log", "list", "--url", nowhere, "--timeout", "1ms", code=Exit.UNREACHABLE)
    assert said.err.startswith(f"error: {nowhere} can't be reached: ")
    assert "Start a server with `anabranch up`" in said.err


def test_the_service_of_these_tests_is_in_memory(service: testing.Server) -> None:
    assert service.url.startswith("anabranch://127.0.0.1:")


def test_a_server_that_is_there_and_silent_or_speaks_http_needs_no_other(
    anabranch: Command,
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"anabranch://127.0.0.1:{silent.getsockname()[1]}"
        said = anabranch("log", "list", "--url", url, "--timeout", "50ms", code=Exit.UNREACHABLE)
        assert "Start a server" not in said.err, said.err
