"""A session that can't start says what is missing."""

import os
import subprocess
import sys
from pathlib import Path

START = "from anabranch_spark.jobs.session import session; session('nothing', master='local[1]')"


def test_a_session_without_java_says_so(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", START],
        env={**os.environ, "JAVA_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "BadRequest: start Spark: Spark needs Java 17 or 21" in done.stderr
