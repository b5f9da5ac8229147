"""Pages of commands are run as they are written, and their output is compared but for times.

Each command of the first page is a process of its own, as for whoever reads it.
"""

from pathlib import Path

import pytest
from tests.integration.cli_server import Server, check_page


@pytest.mark.parametrize(
    ("page", "commands_min", "here"),
    [
        ("tutorial/first-fork.md", 16, False),
        ("howto/forks.md", 30, True),
        ("howto/command-line.md", 20, True),
    ],
)
def test_the_page_says_what_happens(
    root: Path, tmp_path: Path, page: str, commands_min: int, *, here: bool
) -> None:
    text = (root / "docs" / page).read_text()
    with Server.started(tmp_path) as server:
        played = check_page(text, server.terminal(tmp_path), here=here)
    assert played >= commands_min
