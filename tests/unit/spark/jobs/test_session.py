"""Whose session a job runs in, how long it lives, and what its UI shows."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from anabranch_spark.jobs import session as sessions
from anabranch_spark.jobs.session import described, job_session

START = "from anabranch_spark.jobs.session import session; session('nothing', master='local[1]')"
DESCRIPTION = "spark.job.description"


class Session:
    """As much of Spark's as these functions use."""

    def __init__(self) -> None:
        self.stopped = False
        self.properties: dict[str, str | None] = {}
        self.sparkContext = self

    def stop(self) -> None:
        self.stopped = True

    def getLocalProperty(self, name: str) -> str | None:  # noqa: N802  # Spark calls it so
        return self.properties.get(name)

    def setLocalProperty(self, name: str, value: str | None) -> None:  # noqa: N802
        self.properties[name] = value


def _fail(spark: object, found: Session) -> None:
    assert spark is found
    raise OSError("the disk is full")


@pytest.mark.parametrize("running", [True, False])
def test_a_job_ends_the_session_that_it_started_and_no_other(
    *, running: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = Session()
    monkeypatch.setattr(sessions, "is_running", lambda: running)
    monkeypatch.setattr(sessions, "session", lambda *_, **__: found)
    with pytest.raises(OSError, match="full"), job_session("a job") as spark:
        _fail(spark, found)
    assert found.stopped is not running


def test_a_description_lasts_as_long_as_its_block() -> None:
    spark: Any = Session()
    with described(spark, "read"):
        with described(spark, "judge"):
            assert spark.properties[DESCRIPTION] == "judge"
        assert spark.properties[DESCRIPTION] == "read"
    assert spark.properties[DESCRIPTION] is None
    connected: Any = object()
    with described(connected, "Spark Connect has no such thing"):
        pass


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
