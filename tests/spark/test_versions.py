"""The tests of Spark again: with its second version, and over Spark Connect with both.

Each runs in a process of its own, whose packages come from an overlay.
"""

import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from tests.spark import connect_server
from tests.spark.overlays import CONNECT, ROOT, SECOND, environment, overlay

from anabranch_spark.jobs.session import REMOTE

pytestmark = pytest.mark.nightly

RUN_S = 3_000.0
EVERYWHERE = (
    "test_batch.py",
    "test_gate.py",
    "test_diff.py",
    "test_analytics.py",
    "test_audit.py::test_the_job_audits_on_spark_and_its_exit_code_is_the_verdict",
)
IN_THIS_PROCESS = ("test_stream.py", "test_sink.py", "test_page.py")
"""Their functions are meant to run in the process of the test."""
CONNECTED = (
    "test_connected.py",
    "test_sink.py::test_a_run_that_is_repeated_appends_once",
    "test_sink.py::test_what_can_not_be_written_is_refused_by_name",
    "test_sink.py::test_a_stream_appends_each_batch_once_under_its_querys_id",
)


@pytest.fixture(autouse=True)
def spark_runs_here() -> None:
    if find_spec("pyspark") is None:
        pytest.skip("pyspark isn't installed: pip install anabranch[spark]")
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        pytest.skip("no Java on this machine: Spark needs 17 or 21")


def check(tests: tuple[str, ...], env: dict[str, str], folder: Path) -> None:
    """All these tests pass, and none of them is skipped for want of Spark."""
    paths = [str(ROOT / "tests/spark" / each) for each in tests]
    words = ["-q", "-p", "no:xdist", "-p", "no:cacheprovider", "--basetemp", str(folder / "tests")]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *words, *paths],
        env=env,
        cwd=ROOT,
        check=False,
        capture_output=True,
        text=True,
        timeout=RUN_S,
    )
    assert done.returncode == 0, done.stdout[-4_000:] + done.stderr[-2_000:]


def test_the_second_version_reads_and_writes_logs(tmp_path: Path) -> None:
    check((*EVERYWHERE, *IN_THIS_PROCESS), environment([overlay(SECOND)]), tmp_path)


@pytest.mark.parametrize("second", [False, True])
def test_sessions_of_a_connect_server_read_and_write_logs(tmp_path: Path, second: bool) -> None:
    overlays = [overlay(CONNECT), *([overlay(SECOND)] if second else [])]
    env = environment(overlays)
    with connect_server.running(tmp_path, env) as url:
        check((*CONNECTED, *EVERYWHERE), {**env, REMOTE: url}, tmp_path)
