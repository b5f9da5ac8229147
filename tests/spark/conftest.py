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
from anabranch_spark.jobs.session import REMOTE

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HERE = Path(__file__).parent
PATIENCE_S = 60.0
EXTENSIONS = "spark.sql.extensions"
COMPANIONS = "iceberg", "delta", "s3a"
_NAMES = count()
DAILY = frozenset(
    {
        "test_a_query_has_the_records_that_a_client_reads",
        "test_columns_are_those_of_the_option_or_of_the_schema",
        "test_what_cannot_be_granted_is_said",
        "test_a_task_that_finds_damage_names_log_positions_and_object",
        "test_available_now_reads_all_there_is_in_limited_micro_batches_over_restarts",
        "test_a_promoted_fork_ends_the_query_with_the_services_words",
        "test_a_run_that_is_repeated_appends_once",
        "test_a_stream_appends_each_batch_once_under_its_querys_id",
        "test_a_fork_that_fails_is_refused_and_not_promoted",
        "test_what_was_judged_is_promoted",
        "test_a_fork_differs_in_what_was_appended_to_either",
        "test_runs_write_each_record_once_and_name_files_by_positions",
    }
)
"""What a change must pass of the tests that need a session. The others take a quarter of an hour,
and are for the night.
"""
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
        if "spark" in getattr(item, "fixturenames", ()) and item.name.split("[")[0] not in DAILY:
            item.add_marker(pytest.mark.nightly)
        for warning in LEFT_BY_SPARK:
            item.add_marker(pytest.mark.filterwarnings(warning))
        if item.config.pluginmanager.hasplugin("xdist"):
            item.add_marker(pytest.mark.xdist_group("spark"))


@pytest.fixture(scope="session")
def companions(request: pytest.FixtureRequest) -> list[str]:
    """Jars of Iceberg, Delta and S3; none if they can't be had here, or if no test needs them."""
    needed = any("tables" in getattr(item, "fixturenames", ()) for item in request.session.items)
    if not needed or obstacle(COMPANIONS) is not None:
        return []
    try:
        return find(COMPANIONS)
    except Unavailable:
        return []


@pytest.fixture(scope="session")
def spark(
    tmp_path_factory: pytest.TempPathFactory, companions: list[str]
) -> "Iterator[SparkSession]":
    """`local[2]`, with `anabranch` registered; or what SPARK_REMOTE names."""
    if find_spec("pyspark") is None:
        pytest.skip("pyspark isn't installed: pip install anabranch[spark]")
    if REMOTE in os.environ:
        yield from _remote()
        return
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


def _remote() -> "Iterator[SparkSession]":
    from anabranch_spark.jobs.session import session

    found = session("tests")
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
