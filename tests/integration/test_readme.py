"""The README's blocks are run as they stand, in its order, against one server."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.integration.cli_server import Server

import anabranch

BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
FOLLOW = re.compile(r"^curl -N .*$", re.MULTILINE)
TEN_LINES_SAY = [("0", "3 apples"), ("1", "5 pears"), ("2", "9 apples"), ("3", "+20 apples")]


@pytest.fixture(scope="module")
def blocks(root: Path) -> dict[str, str]:
    """By the word it begins with."""
    found = BLOCK.findall((root / "README.md").read_text())
    return {block.split()[0]: block for _, block in found}


def test_what_the_readme_shows_happens(
    blocks: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with Server.started(tmp_path, http=True) as server:
        exec(blocks["import"].replace("anabranch://127.0.0.1:7420", server.url), {})
        told = re.findall(r"\((\d+), b'([^']+)', Origin\(log=[12], ", capsys.readouterr().out)
        assert told == TEN_LINES_SAY

        lines = run(blocks["anabranch"], server.terminal(tmp_path)).splitlines()
        assert lines[-3:] == ["       0  3 apples", "       1  5 pears", "       2  +20 apples"]


@pytest.mark.parametrize("page", ["README.md", "docs/howto/belfast.md"])
def test_a_service_has_belfast_logs_as_shown(page: str, root: Path, tmp_path: Path) -> None:
    found = (block for _, block in BLOCK.findall((root / page).read_text()))
    (shown,) = (block for block in found if "log create ticks" in block)
    with Server.started(tmp_path) as server:
        said = run(shown.replace(".venv/bin/", ""), server.terminal(tmp_path))
    assert "3 apples" in said
    assert "shard-1" in said


@pytest.mark.parametrize("page", ["README.md", "docs/howto/erwin.md"])
def test_a_service_has_erwin_logs_as_shown(page: str, root: Path, tmp_path: Path) -> None:
    found = (block for _, block in BLOCK.findall((root / page).read_text()))
    (shown,) = (block for block in found if "log create audit" in block)
    with Server.started(tmp_path) as server:
        said = run(shown.replace(".venv/bin/", ""), server.terminal(tmp_path))
    assert "to audit at 0..1" in said
    assert "BACKLOG" in said


def test_the_program_of_the_page_on_erwin_runs(
    root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = (root / "docs/howto/erwin.md").read_text()
    (program,) = (block for language, block in BLOCK.findall(page) if language == "python")
    with Server.started(tmp_path) as server:
        exec(program.replace("anabranch://127.0.0.1:7420", server.url), {})
    lines = capsys.readouterr().out.splitlines()
    assert lines[-2:] == ["0 b'3 apples'", "1 b'5 pears'"]


def test_the_page_on_erwin_asks_over_http_as_shown(root: Path, tmp_path: Path) -> None:
    page = (root / "docs/howto/erwin.md").read_text()
    (shown,) = (block for _, block in BLOCK.findall(page) if "curl" in block)
    with Server.started(tmp_path, http=True) as server:
        assert server.http is not None
        environment = server.terminal(tmp_path)
        run("anabranch log create audit --engine erwin", environment)
        said = run(shown.replace("http://127.0.0.1:7421", f"http://{server.http}"), environment)
    assert '"position":null' in said
    assert '"position":1,"receipt":null' in said
    assert '"value":"9 melons"' in said


def test_the_page_on_lazy_appends_runs(
    root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = BLOCK.findall((root / "docs/howto/lazy.md").read_text())
    shown = "\n".join(block for language, block in found if language == "sh")
    (program,) = (block for language, block in found if language == "python")
    with Server.started(tmp_path) as server:
        said = run(shown, server.terminal(tmp_path))
        assert "to clicks at 0..1" in said
        assert "to carts at 1" in said
        assert "5 pears" in said
        exec(program.replace("anabranch://127.0.0.1:7420", server.url), {})
    assert capsys.readouterr().out.splitlines()[-1].startswith("0 ")


@pytest.mark.skipif(shutil.which("curl") is None, reason="there is no curl here")
def test_curl_is_enough(blocks: dict[str, str], tmp_path: Path) -> None:
    with Server.started(tmp_path, http=True) as server:
        with anabranch.connect(server.url) as service:
            service.create("fruit").append(b"3 apples")
        assert server.http is not None
        curl = blocks["curl"].replace("localhost:7421", server.http)
        assert '"position":1' in run(FOLLOW.sub("", curl), server.environment)
        assert followed(FOLLOW.findall(curl), server.environment) == ["event: deliver", "id: 1:1"]


def test_the_verbs_of_make_are_there(root: Path) -> None:
    verbs = re.findall(r"^([a-z-]+):", (root / "Makefile").read_text(), re.MULTILINE)
    shown = re.findall(r"^make ([\w-]+)", (root / "README.md").read_text(), re.MULTILINE)
    assert {"demo", "test", "up", "cluster-local"} <= set(shown) <= set(verbs)


def run(script: str, shell: dict[str, str]) -> str:
    command = ["bash", "-euo", "pipefail", "-c", script]
    return subprocess.run(command, env=shell, check=True, stdout=subprocess.PIPE, text=True).stdout


def followed(commands: list[str], shell: dict[str, str]) -> list[str]:
    """The first two lines of what would go on for ever."""
    (command,) = commands
    follower = subprocess.Popen(
        ["bash", "-c", f"exec {command}"], env=shell, stdout=subprocess.PIPE, text=True
    )
    assert follower.stdout is not None
    with follower:
        lines = [follower.stdout.readline().rstrip() for _ in range(2)]
        follower.terminate()
    return lines
