"""A job that the image's entrypoint starts runs where `spark-submit` says, and ends as it says."""

import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from anabranch_spark.entrypoint import DRIVER

pytestmark = [
    pytest.mark.skipif(find_spec("pyspark") is None, reason="pyspark isn't installed"),
    pytest.mark.skipif(shutil.which("java") is None, reason="no Java on this machine"),
]

JOB = """\
import sys

from anabranch_spark.jobs.session import session

spark = session("names its master")
print(sys.argv[1:], spark.sparkContext.master, spark.conf.get("spark.app.name"))
spark.stop()
sys.exit(2)
"""
ENDS_S = 240


@pytest.mark.nightly  # starts a JVM, and another one through `spark-submit`
@pytest.mark.parametrize("how", ["arguments", "configuration"])
def test_a_module_runs_where_spark_submit_says(tmp_path: Path, how: str) -> None:
    (tmp_path / "naming.py").write_text(JOB)
    (tmp_path / "spark-defaults.conf").write_text("spark.master local[1]\nspark.ui.enabled false\n")
    (tmp_path / "log4j2.properties").write_text("rootLogger.level = error\n")
    options = ["--master", "local[3]"] if how == "arguments" else []
    words = [DRIVER, *options, "-m", "naming", "--report", "r.json"]
    pyspark = find_spec("pyspark")
    assert pyspark is not None
    assert pyspark.origin is not None
    done = subprocess.run(
        [sys.executable, "-m", "anabranch_spark.entrypoint", *words],
        env={
            **os.environ,
            "SPARK_HOME": str(Path(pyspark.origin).parent),
            "SPARK_CONF_DIR": str(tmp_path),
            "PYSPARK_PYTHON": sys.executable,
            "PYTHONPATH": str(tmp_path),
        },
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=ENDS_S,
    )
    master = "local[3]" if how == "arguments" else "local[1]"
    assert done.stdout.splitlines()[-1] == f"['--report', 'r.json'] {master} names its master", (
        done.stderr[-2_000:]
    )
    assert done.returncode == 2, "the exit code is the job's own"
