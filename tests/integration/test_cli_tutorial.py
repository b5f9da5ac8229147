"""Pages of commands are run as they are written, and their output is compared but for times."""

from pathlib import Path

import pytest
from tests.integration.cli_server import Server, check_page


@pytest.mark.parametrize(
    ("page", "commands_min"),
    [("tutorial/first-fork.md", 16), ("howto/forks.md", 30), ("howto/command-line.md", 20)],
)
def test_the_page_says_what_happens(
    root: Path, tmp_path: Path, page: str, commands_min: int
) -> None:
    with Server.started(tmp_path) as server:
        played = check_page((root / "docs" / page).read_text(), server.terminal(tmp_path))
    assert played >= commands_min
