"""Which version of Spark does what, and what a run does if Spark can't start its Python."""

from typing import Any

import pytest
from pyspark.errors import StreamingQueryException

from anabranch.errors import BadRequest
from anabranch_spark.source.streams.available_now import (
    NO_PYTHON,
    STARTS_MAX,
    available_now,
    limits_micro_batches,
)


@pytest.mark.parametrize(
    ("version", "limits"),
    [("4.1.3", False), ("4.2.0", True), ("4.10.0", True), ("5.0.0", True), ("4.2.1-rc1", True)],
)
def test_readers_limit_micro_batches_from_4_2_on(version: str, limits: bool) -> None:
    assert limits_micro_batches(version) == limits


class Query:
    """Fails so many times, as Spark does, and then reads everything."""

    def __init__(self, failures: int, says: str = f"[STREAM_FAILED] {NO_PYTHON}.") -> None:
        self.failures, self.says = failures, says
        self.starts, self.isActive = 0, True

    def option(self, name: str, value: str) -> "Query":
        assert (name, value) == ("availableNow", "true")
        return self

    @property
    def sparkSession(self) -> "Query":  # noqa: N802
        return self

    version = "4.1.3"

    def load(self) -> "Query":
        return self

    def trigger(self, **_: object) -> "Query":
        return self

    def start(self) -> "Query":
        self.starts += 1
        self.isActive = True
        return self

    def processAllAvailable(self) -> None:  # noqa: N802  # Spark calls it so
        if self.starts <= self.failures:
            raise StreamingQueryException(self.says)

    awaitTermination = processAllAvailable  # noqa: N815

    def stop(self) -> None:
        self.isActive = False


def run(query: Any) -> object:
    def write(frame: Any) -> Any:
        return frame

    return available_now(query, write)


def test_a_python_that_did_not_start_in_time_is_started_again() -> None:
    query = Query(STARTS_MAX - 1)
    assert run(query) is query
    assert query.starts == STARTS_MAX


def test_it_is_started_so_often_and_no_more() -> None:
    query = Query(STARTS_MAX)
    with pytest.raises(StreamingQueryException, match=NO_PYTHON):
        run(query)
    assert query.starts == STARTS_MAX


def test_what_the_log_says_ends_the_run() -> None:
    query = Query(1, "orders--x was promoted: use orders")
    with pytest.raises(StreamingQueryException, match="was promoted"):
        run(query)
    assert query.starts == 1


def test_a_query_that_was_started_is_stopped_and_refused() -> None:
    class Started:
        stopped = False

        def stop(self) -> None:
            self.stopped = True

    started: Any = Started()
    with pytest.raises(BadRequest, match="doesn't start it"):
        available_now(Query(0), lambda _: started)  # type: ignore[arg-type]
    assert started.stopped
