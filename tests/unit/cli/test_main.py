"""The commands as a whole: help, exit codes, usage errors; no server is asked."""

import json
import subprocess
import sys
from pathlib import Path

import click
import pytest

from anabranch.cli.failure import Exit, Unreachable, exit_code, run
from anabranch.cli.grammar import OTHER_NAMES
from anabranch.cli.main import CONTEXT, PROGRAM, SECTIONS, cli
from anabranch.cli.reference import written
from anabranch.core.errors import BY_CODE, AnabranchError, restore

NOWHERE = "anabranch://127.0.0.1:1"


def leaves(group: click.Group, *path: str) -> list[tuple[tuple[str, ...], click.Command]]:
    context = click.Context(group, **CONTEXT)
    found: list[tuple[tuple[str, ...], click.Command]] = []
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            found += leaves(command, *path, name)
        else:
            found.append(((*path, name), command))
    return found


def test_the_list_of_commands_says_what_each_command_says() -> None:
    context = click.Context(cli, **CONTEXT)
    listed = {name: says for part in SECTIONS.values() for name, (_, says) in part.items()}
    for name, says in listed.items():
        command = cli.get_command(context, name)
        assert command is not None
        assert command.help is not None
        assert command.help.splitlines()[0] == says
        assert command.name == name


def test_every_command_prints_json_if_asked() -> None:
    processes = {("metadata",), ("broker",), ("gateway",), ("sequencer",), ("shard",)}
    silent = {("up",), ("demo",), ("completion",), ("spark",), *processes}
    without = {
        path
        for path, command in leaves(cli)
        if "output" not in {parameter.name for parameter in command.params}
    }
    assert without <= silent


def test_every_option_says_what_it_is_for() -> None:
    for path, command in leaves(cli):
        for parameter in command.params:
            if isinstance(parameter, click.Option):
                assert parameter.help, (path, parameter.name)


def test_the_reference_is_what_the_commands_say(root: Path) -> None:
    page = (root / "docs" / "reference" / "cli.md").read_text()
    assert page == written(), "run: python -m anabranch.cli.reference"


@pytest.mark.parametrize("code", BY_CODE)
def test_every_error_has_an_exit_code_that_fits_its_advice(code: str) -> None:
    error = restore(code, "as it was said", {})
    expected = {"retry": Exit.BLOCKED, "run fsck": Exit.DAMAGE}.get(error.advice, Exit.REFUSED)
    if code == "journal-behind":
        expected = Exit.BEHIND
    assert exit_code(error) == expected


def test_a_server_that_is_not_there_is_told_from_one_that_is_busy() -> None:
    assert exit_code(Unreachable("somewhere", "nobody")) == Exit.UNREACHABLE


def test_errors_name_the_way_out(capsys: pytest.CaptureFixture[str]) -> None:
    code = run(cli, PROGRAM, ["log", "list", "--url", NOWHERE, "--timeout", "100ms"])
    said = capsys.readouterr()
    assert code == Exit.UNREACHABLE
    assert said.out == ""
    assert NOWHERE in said.err
    assert "anabranch up" in said.err


def test_errors_are_json_where_output_is(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["log", "list", "--url", NOWHERE, "--timeout", "100ms", "--output=json"]
    assert run(cli, PROGRAM, arguments) == Exit.UNREACHABLE
    said = json.loads(capsys.readouterr().err)["error"]
    assert said["code"] == "unreachable"
    assert said["advice"] == "retry"
    assert said["facts"]["url"] == NOWHERE


@pytest.mark.parametrize(
    "arguments",
    [
        ["no-such-command"],
        ["append", "orders", "value", "--lines"],
        ["append", "orders", "value", "--header", "no equals sign"],
        ["fork", "orders", "--continuous", "--at", "5"],
        ["fork", "orders", "--at", "5", "--promotable"],
        ["fork", "orders", "--ttl", "soon"],
        ["read", "orders", "--format", "xml"],
        ["trim", "orders"],
        ["log", "list", "--url", "http://example.org"],
        ["completion", "tcsh"],
        ["fsck", "--data", "/nowhere/at/all"],
    ],
)
def test_a_wrong_command_line_is_told_apart(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(cli, PROGRAM, arguments) == Exit.USAGE
    assert "Error: " in capsys.readouterr().err
    assert run(cli, PROGRAM, [*arguments, "-o", "json"]) == Exit.USAGE
    said = json.loads(capsys.readouterr().err)["error"]
    assert (said["code"], said["facts"]) == ("usage", {})
    assert said["message"]


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        (["raed"], "'read'"),
        (["merge"], "'promote'"),
        (["lst"], "'log list'"),
        (["consume"], "'read'"),
        (["log", "crate"], "'create'"),
        (["profile", "lst"], "'list'"),
        (["append", "orders", "a", "--ky", "k"], "'--key'"),
    ],
)
def test_what_may_have_been_meant_is_suggested(
    typed: list[str], meant: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(cli, PROGRAM, typed) == Exit.USAGE
    assert f"Did you mean {meant}" in capsys.readouterr().err


@pytest.mark.parametrize("option", ["--profile", "--url", "-o"])
def test_where_options_of_commands_stand_is_said(
    option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(cli, PROGRAM, [option, "x", "log", "list"]) == Exit.USAGE
    assert f"{option} goes behind the command" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["status", "windows"])
def test_a_name_where_none_belongs_is_led_to_its_option(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(cli, PROGRAM, ["belfast", command, "ticks"]) == Exit.USAGE
    assert "is named with --log ticks" in capsys.readouterr().err


def test_other_names_lead_to_commands_that_exist() -> None:
    known = {" ".join(path) for path, _ in leaves(cli)} | set(
        cli.list_commands(click.Context(cli, **CONTEXT))
    )
    assert set(OTHER_NAMES.values()) <= known
    assert not OTHER_NAMES.keys() & known


def test_every_command_has_a_short_flag_for_help(capsys: pytest.CaptureFixture[str]) -> None:
    for path in ([], ["log"], ["append"], ["belfast", "status"]):
        assert run(cli, PROGRAM, [*path, "-h"]) == Exit.OK
        assert "Usage: " in capsys.readouterr().out


def test_a_directory_that_holds_nothing_is_not_made_one_that_does(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(cli, PROGRAM, ["fsck", "--data", str(tmp_path)]) == Exit.REFUSED
    assert "nothing is stored there" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_is_for_this_program(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(cli, PROGRAM, ["completion", shell]) == Exit.OK
    assert "_ANABRANCH_COMPLETE" in capsys.readouterr().out


def test_help_loads_neither_commands_nor_what_they_draw_with() -> None:
    program = (
        "import sys; from anabranch.cli.failure import run; from anabranch.cli.main import cli\n"
        "assert run(cli, 'anabranch', ['--help']) == 0\n"
        "print([name for name in sys.modules if name.split('.')[0] in"
        " ('rich', 'asyncio', 'uvloop', 'fastapi', 'matplotlib', 'aiokafka')])"
    )
    output = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    ).stdout
    assert output.splitlines()[-1] == "[]"


def test_an_unexpected_error_class_is_refused() -> None:
    assert exit_code(AnabranchError(reason="of another version")) == Exit.REFUSED
