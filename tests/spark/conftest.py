"""A Spark session of two cores, shared by all tests of a worker, and services to read from."""

import os
import shutil
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from signal import SIGKILL
from typing import TYPE_CHECKING

import pytest
from tests.integration.server_process import Process, running

import anabranch
from anabranch.errors import Unavailable
from anabranch_spark.companions.fetch import find, obstacle
from anabranch_spark.export import delta, iceberg

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HERE = Path(__file__).parent
PATIENCE_S = 60.0
EXTENSIONS = "spark.sql.extensions"
COMPANIONS = "iceberg", "delta", "s3a"
_NAMES = count()
LEFT_BY_SPARK = (
    "ignore:unclosed <socket:ResourceWarning",
    "ignore:Exception ignored in. <socket:pytest.PytestUnraisableExceptionWarning",
)
"""It leaves the socket of each `collect` to the garbage collector."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """One worker starts the JVM, and runs every test that needs it."""
    for item in items:
        if HERE not in item.path.parents:
            continue
        for warning in LEFT_BY_SPARK:
            item.add_marker(pytest.mark.filterwarnings(warning))
        if item.config.pluginmanager.hasplugin("xdist"):
            item.add_marker(pytest.mark.xdist_group("spark"))


@pytest.fixture(scope="session")
def companions() -> list[str]:
    """Jars of Iceberg, Delta and S3; none if they can't be had here."""
    if obstacle(COMPANIONS) is not None:
        return []
    try:
        return find(COMPANIONS)
    except Unavailable:
        return []


@pytest.fixture(scope="session")
def spark(
    tmp_path_factory: pytest.TempPathFactory, companions: list[str]
) -> "Iterator[SparkSession]":
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
        jars=companions,
        settings={
            **(_tables() if companions else {}),
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


def _tables() -> dict[str, str]:
    """Static settings, so every test's session has both."""
    both = f"{iceberg.SETTINGS[EXTENSIONS]},{delta.SETTINGS[EXTENSIONS]}"
    return {**iceberg.SETTINGS, **delta.SETTINGS, EXTENSIONS: both}


@pytest.fixture
def tables(spark: "SparkSession", companions: list[str]) -> "SparkSession":
    """The session, if it can write tables of Iceberg and Delta, and to S3."""
    if not companions:
        pytest.skip("the jars of Iceberg, Delta and S3 can't be fetched here")
    return spark


@pytest.fixture(scope="session")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A service over a folder, whose objects executors can fetch."""
    with running(tmp_path_factory.mktemp("service")) as process:
        yield url_of(process)


@pytest.fixture
def service(url: str) -> Iterator[anabranch.Service]:
    with anabranch.connect(url, timeout=PATIENCE_S) as service:
        yield service


@pytest.fixture
def log(service: anabranch.Service) -> anabranch.Log:
    """A new log of the test's own."""
    return service.create(f"orders-{next(_NAMES)}")


@pytest.fixture
def own_service(tmp_path: Path) -> Iterator[Callable[..., tuple[Process, str]]]:
    """Starts a service over the test's own folder; called again, it ends the one before."""
    started: list[Process] = []

    def start(*flags: str) -> tuple[Process, str]:
        for each in started:
            each.end(SIGKILL)
        data = tmp_path / "data"
        data.mkdir(exist_ok=True)
        started.append(process := Process(data, *flags))
        return process, url_of(process)

    yield start
    for each in started:
        each.end(SIGKILL)


def url_of(process: Process) -> str:
    return f"anabranch://127.0.0.1:{process.port}"
