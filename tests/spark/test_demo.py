"""`make demo-spark`, played to its end."""

import socket
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest

import anabranch
from anabranch.errors import Unavailable
from anabranch_spark.demo import stage
from anabranch_spark.demo.story import FILES, ORDERS, PAGE
from anabranch_spark.export.names import range_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.nightly  # it starts five JVMs
def test_the_demo_ends_well_and_leaves_files_and_a_report(
    tables: "SparkSession", tmp_path: Path
) -> None:
    out = tmp_path / "demo"
    done = subprocess.run(
        [sys.executable, "-m", "anabranch_spark.demo", "--out", str(out)],
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert "The gate refuses, with exit code 2" in done.stdout
    assert (out / PAGE).as_uri() in done.stdout
    assert (out / PAGE).read_text().startswith("<!")
    ranges = sorted(each for path in (out / FILES).iterdir() if (each := range_of(path.name)))
    assert ranges[0].start == 0
    assert ranges[-1].end > ORDERS
    assert not (out / "data").exists(), "the service is stopped, and its data are gone"


def test_the_demos_service_ends_with_the_demo(tmp_path: Path) -> None:
    with stage.service(tmp_path) as url, anabranch.connect(url) as service:
        service.create("orders")
    address = urlsplit(url)
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((address.hostname, address.port))


def test_a_server_that_cant_start_is_said(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("a file, where a folder should be")
    with pytest.raises(Unavailable, match="demo's server"), stage.service(tmp_path):
        pass
