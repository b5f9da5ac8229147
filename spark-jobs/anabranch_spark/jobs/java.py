"""Whether Spark can start here, found out before anything is made."""

import os
import re
import shutil
import subprocess
from pathlib import Path

WANTED = (17, 21)
_VERSION = re.compile(r'version "(?:1\.)?(\d+)')
_LOOK_S = 60.0
_ADVICE = "on Debian and Ubuntu: sudo apt-get install openjdk-17-jre-headless"


def obstacle() -> str | None:
    """Why Spark can't start, in a sentence; None if it can."""
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home, "bin", "java")) if home else shutil.which("java")
    if java is None:
        return f"Spark needs Java {_named()}, and there is none here; {_ADVICE}"
    try:
        done = subprocess.run(
            [java, "-version"], check=False, capture_output=True, text=True, timeout=_LOOK_S
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"Spark needs Java {_named()}, and {java} can't be run: {error}"
    found = version(done.stderr + done.stdout)
    if found is None or found < WANTED[0]:
        return f"Spark needs Java {_named()}, and {java} is {found or 'of no known version'}"
    return None


def version(text: str) -> int | None:
    """The major version in what `java -version` prints."""
    found = _VERSION.search(text)
    return int(found[1]) if found else None


def _named() -> str:
    return " or ".join(map(str, WANTED))
