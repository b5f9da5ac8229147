"""What README.md and docs/howto/belfast.md show, run as it stands against one log."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.documents import blocks
from tests.integration.belfast.deployment import PATIENCE_S
from tests.integration.cli_server import bare, command_in

import anabranch
from anabranch.apps.processes.local_log import LocalLog

ELSEWHERE = ("export ", ".venv/bin/anabranch up", "anabranch up", "anabranch sequencer")
"""They start a log, or say where it is."""


@pytest.fixture(scope="module")
def shell(shared: LocalLog, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    path = f"{command_in(tmp_path_factory.mktemp('bin'))}:{bare()['PATH']}"
    return {**bare(), "PATH": path, "ANABRANCH_URL": shared.layout.url}


@pytest.fixture(scope="module")
def filled(shared: LocalLog) -> None:
    """With as many records as the pages wait for."""
    with anabranch.belfast.connect(shared.layout.url, timeout=PATIENCE_S) as log:
        log.append_many([b"%d" % number for number in range(3)], timeout=PATIENCE_S)


def commands(root: Path, page: str, word: str) -> Iterator[str]:
    for block in blocks(root):
        # Logs of a service are played by test_readme.py.
        if block.page == page and word in block.text and "log create" not in block.text:
            yield from (each for each in block.commands if not each.startswith(ELSEWHERE))


def played(command: str, shell: dict[str, str]) -> str:
    ended = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", command],
        env=shell,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert ended.returncode == 0, f"{command}: {ended.stderr}"
    return ended.stdout


def begun(command: str, shell: dict[str, str]) -> str:
    """The first line of what goes on until Ctrl-C."""
    process = subprocess.Popen(
        ["bash", "-c", f"exec {command}"], env=shell, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    with process:
        line = process.stdout.readline()
        process.terminate()
    return line


@pytest.mark.usefixtures("filled")
def test_what_the_readme_shows_of_it_happens(root: Path, shell: dict[str, str]) -> None:
    shown = list(commands(root, "README.md", "anabranch belfast"))
    assert len(shown) == 2
    for command in shown:
        here = command.replace(".venv/bin/anabranch", "anabranch").replace(
            "URL", '"$ANABRANCH_URL"'
        )
        said = begun(here, shell) if " tail " in here else played(here, shell)
        assert said.strip(), command


@pytest.mark.usefixtures("filled")
def test_what_the_guide_shows_happens(root: Path, shell: dict[str, str], shared: LocalLog) -> None:
    shown = [*commands(root, "docs/howto/belfast.md", "anabranch belfast")]
    assert len(shown) == 7
    for command in shown:
        here = command
        if "POSITION" in command:
            with anabranch.belfast.connect(shared.layout.url, timeout=PATIENCE_S) as log:
                here = command.replace("POSITION", str(log.status(timeout=PATIENCE_S).confirmed))
        said = begun(here, shell) if here.split()[2] == "top" else played(here, shell)
        assert said.strip(), command
