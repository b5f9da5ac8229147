"""The tutorial is run as it is written, and its output is compared but for times."""

import re
import subprocess
import sys
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path

import pytest
from tests.integration.cli_server import Server, bare

TIME = re.compile(r"\d+(?:\.\d+)? (?:us|ms|s|m|h)\b(?: \d+ [smh]\b)?")
BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """A terminal in which `anabranch` is this one, and the server of the first block runs."""
    directory = tmp_path_factory.mktemp("tutorial")
    command = directory / "anabranch"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m anabranch.cli.main "$@"\n')
    command.chmod(0o700)
    with Server.started(directory) as server:
        yield {
            **bare(),
            "PATH": f"{directory}:{bare()['PATH']}",
            "ANABRANCH_URL": server.url,
            "LOGNAME": "you",
        }


def steps(page: str) -> list[tuple[str, list[str]]]:
    """Commands, each with the lines that follow it."""
    found: list[tuple[str, list[str]]] = []
    for block in BLOCK.findall(page):
        for line in block.splitlines():
            if line.startswith("$ "):
                found.append((line.removeprefix("$ "), []))
            else:
                found[-1][1].append(line)
    return found


def timeless(line: str) -> str:
    """Times vary, and how wide the column before them is doesn't."""
    return TIME.sub("TIME", line)


def test_first_fork(root: Path, environment: dict[str, str]) -> None:
    page = (root / "docs" / "tutorial" / "first-fork.md").read_text()
    played = steps(page)
    assert len(played) > 15
    for command, expected in played:
        said = subprocess.run(
            ["sh", "-c", command],
            env=environment,
            check=False,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        ).stdout
        for line, shown in zip_longest(said.splitlines(), expected, fillvalue=""):
            assert timeless(line) == timeless(shown), command
