"""The guide to curl, played as it stands."""

import doctest
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from anabranch.apps.http.context import FrontSettings

GUIDE = Path("docs/howto/curl.md")
ADDRESS = "http://127.0.0.1:7421"


def steps(text: str) -> list[tuple[str, str]]:
    """Each command, and what the guide shows below it."""
    found: list[tuple[str, str]] = []
    for block in re.findall(r"^```console\n(.*?)^```$", text, re.DOTALL | re.MULTILINE):
        for step in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, shown = step.partition("\n")
            found.append((command, shown))
    return found


@pytest.mark.skipif(shutil.which("curl") is None, reason="there is no curl here")
def test_the_guide_to_curl_says_what_happens(serving: Any, root: Path) -> None:
    played = steps((root / GUIDE).read_text())
    assert len(played) > 20
    told = doctest.OutputChecker()
    setting = ""
    # The heartbeat is what ends a pipe that nobody reads any more.
    with serving(front=FrontSettings(heartbeat_ms=100)) as served:
        for command, shown in played:
            if re.fullmatch(r"[A-Z]+=.*", command):
                setting += command.replace(ADDRESS, served.url) + "\n"
                continue
            result = subprocess.run(
                ["bash", "-c", setting + command],
                check=False,
                capture_output=True,
                text=True,
                timeout=60,
            )
            got = result.stdout if result.stdout.endswith("\n") else f"{result.stdout}\n"
            assert told.check_output(shown, got, doctest.ELLIPSIS), f"{command}\n{got}"
