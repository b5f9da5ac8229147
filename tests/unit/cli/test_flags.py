"""Every flag that a message or a page tells somebody to use exists."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from anabranch.cli.main import CONTEXT, PROGRAM, cli

FLAG = re.compile(r"(?<![\w-])--[a-z][a-z0-9-]*[a-z0-9](?![\w{-])")
COMMAND = re.compile(rf"\b{PROGRAM} [a-z][^`\n|]*")
OF_OTHERS = {
    "kubectl": {
        "--all-namespaces", "--audience", "--field-selector", "--for", "--patch", "--raw",
        "--recursive", "--show-managed-fields", "--subresource", "--tail", "--timeout", "--type",
    },
    "etcd and etcdctl": {
        "--endpoints", "--keys-only", "--prefix", "--quota-backend-bytes", "--write-out",
    },
    "versitygw": {"--cert", "--health", "--keep-alive", "--key", "--port", "--quiet", "--region"},
    "the operator": {"--cluster-wide", "--namespace", "--lease-s"},
}  # fmt: skip
SOURCES = ("services/anabranch", "operator/anabranch_operator")
PAGES = ("docs/reference/errors.md", "docs/runbooks/*.md")
GUIDES = ("README.md", "docs/howto/*.md", "docs/explanation/*.md", "docs/tutorials/*.md", *PAGES)


def commands(group: click.Group, *path: str) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    context = click.Context(group, **CONTEXT)
    yield path, group
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from commands(command, *path, name)
        else:
            yield (*path, name), command


def flags(command: click.Command) -> set[str]:
    options = command.get_params(click.Context(command, **CONTEXT))
    return {flag for each in options for flag in (*each.opts, *each.secondary_opts)}


@pytest.fixture(scope="module")
def known() -> dict[tuple[str, ...], set[str]]:
    """Of each command, by its path."""
    return {path: flags(command) for path, command in commands(cli)}


def texts(file: Path) -> Iterator[str]:
    """Strings of a source, docstrings among them: help, errors and log lines are made of those."""
    waiting: list[ast.AST] = [ast.parse(file.read_text(encoding="utf-8"))]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.JoinedStr):
            parts = (each.value if isinstance(each, ast.Constant) else "{}" for each in node.values)
            yield "".join(map(str, parts))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
        else:
            waiting += ast.iter_child_nodes(node)


def missing(said: Iterator[tuple[str, str]], known: dict[tuple[str, ...], set[str]]) -> list[str]:
    """Flags that no command has, neither ours nor one of those that the texts speak of."""
    there = set[str]().union(*known.values(), *OF_OTHERS.values())
    return [
        f"{where}: {flag}" for where, text in said for flag in FLAG.findall(text)
        if flag not in there
    ]  # fmt: skip


def misused(text: str, known: dict[tuple[str, ...], set[str]]) -> list[str]:
    """Commands in a text with a flag that isn't theirs."""
    found: list[str] = []
    for said in COMMAND.findall(text.replace("\\\n", " ")):
        words = re.split(r"\s[;&>|#]|\s--\s", said)[0].split()[1:]
        path = tuple(words)
        while path not in known:
            path = path[:-1]
        if path:
            found += [said for flag in FLAG.findall(" ".join(words)) if flag not in known[path]]
    return found


def pages(root: Path, patterns: tuple[str, ...]) -> list[Path]:
    return sorted(file for pattern in patterns for file in root.glob(pattern))


def test_every_flag_in_a_message_or_a_log_line_exists(
    root: Path, known: dict[tuple[str, ...], set[str]]
) -> None:
    files = [file for source in SOURCES for file in (root / source).rglob("*.py")]
    assert len(files) > 100
    said = ((file.name, text) for file in files for text in texts(file))
    assert missing(said, known) == []


def test_every_flag_in_the_pages_of_errors_and_runbooks_exists(
    root: Path, known: dict[tuple[str, ...], set[str]]
) -> None:
    files = pages(root, PAGES)
    assert len(files) > 10
    said = ((file.name, file.read_text(encoding="utf-8")) for file in files)
    assert missing(said, known) == []


def test_every_command_in_a_message_or_a_page_has_the_flags_that_it_is_shown_with(
    root: Path, known: dict[tuple[str, ...], set[str]]
) -> None:
    wrong: dict[str, list[str]] = {}
    for file in pages(root, GUIDES):
        wrong[file.name] = misused(file.read_text(encoding="utf-8"), known)
    for source in SOURCES:
        for file in (root / source).rglob("*.py"):
            wrong[file.name] = [each for text in texts(file) for each in misused(text, known)]
    assert {name: found for name, found in wrong.items() if found} == {}


def test_a_flag_that_is_not_there_is_seen(known: dict[tuple[str, ...], set[str]]) -> None:
    assert missing(iter([("here", "say --no-such-flag")]), known) == ["here: --no-such-flag"]
    assert misused("`anabranch belfast append --retry-unknown`", known) == []
    assert misused("`anabranch belfast trim --retry-unknown 5`", known) != []
    assert misused("`anabranch trim --no-such-flag`", known) != []
