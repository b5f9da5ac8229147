"""The page about gates says what happens: its commands are run as they stand.

`docs/howto/spark-gate.md`
"""

import subprocess
import sys
from pathlib import Path

import pytest
from tests.documents import Block, blocks
from tests.integration.cli_server import Server

from anabranch_spark.expectations import load, parsed

# pyspark leaves the socket of each `collect` to the garbage collector.
pytestmark = pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")

PAGE = "docs/howto/spark-gate.md"


@pytest.fixture(scope="module")
def page(root: Path) -> list[Block]:
    return [block for block in blocks(root) if block.page == PAGE]


def text_of(page: list[Block], language: str) -> str:
    return next(block.text for block in page if block.language == language)


def test_the_yaml_and_the_python_of_the_page_declare_the_same(
    page: list[Block], tmp_path: Path
) -> None:
    file = tmp_path / "orders.py"
    file.write_text(text_of(page, "python"))
    assert load(str(file)) == parsed(text_of(page, "yaml").encode(), PAGE)


@pytest.mark.nightly
@pytest.mark.usefixtures("spark")
def test_the_commands_of_the_page_print_what_it_shows(page: list[Block], tmp_path: Path) -> None:
    """Each is a process of its own, so each run of the gate starts a Spark of its own."""
    (tmp_path / "orders.yaml").write_text(text_of(page, "yaml"))
    codes: list[int] = []
    with Server.started(tmp_path) as server:
        environment = server.terminal(tmp_path)
        for block in page:
            if block.language != "console":
                continue
            for number, command in enumerate(block.commands):
                done = subprocess.run(
                    ["bash", "-c", command.replace("python -m", "$PYTHON -m")],
                    cwd=tmp_path,
                    env={**environment, "PYTHON": _python()},
                    capture_output=True,
                    text=True,
                    check=False,
                )
                shown = block.text.split("$ " + command)[1].split("\n$ ")[0].splitlines()[1:]
                missing = [line for line in shown if line not in done.stderr.splitlines()]
                assert missing == [], (number, command, done.stdout, done.stderr)
                if "anabranch_spark" in command:
                    codes.append(done.returncode)
                else:
                    assert done.returncode == 0, done.stderr
    assert codes == [2, 0]
    assert (tmp_path / "report.html").stat().st_size > 5_000


def _python() -> str:
    return sys.executable
