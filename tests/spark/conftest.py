"""A Spark session of two cores, shared by all tests of a worker, and services to read from."""

import os
import shutil
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.integration.server_process import running

import anabranch

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """One worker starts the JVM, and runs every test that needs it."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.xdist_group("spark"))


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> "Iterator[SparkSession]":
    """`local[2]`, with `anabranch` registered."""
    if find_spec("pyspark") is None:
        pytest.skip("pyspark isn't installed: pip install anabranch[spark]")
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        pytest.skip("no Java on this machine: Spark needs 17 or 21")
    from anabranch_spark.jobs.session import session

    folder = tmp_path_factory.mktemp("spark")
    found = session(
        "tests",
        master="local[2]",
        settings={
            "spark.ui.enabled": "false",
            "spark.sql.shuffle.partitions": "2",
            "spark.sql.warehouse.dir": str(folder / "warehouse"),
            "spark.local.dir": str(folder / "local"),
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
        },
    )
    found.sparkContext.setLogLevel("ERROR")
    yield found
    found.stop()


@pytest.fixture(scope="session")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A service over a folder, whose objects executors can fetch."""
    with running(tmp_path_factory.mktemp("service")) as process:
        yield f"anabranch://127.0.0.1:{process.port}"


@pytest.fixture
def service(url: str) -> Iterator[anabranch.Service]:
    with anabranch.connect(url) as service:
        yield service
