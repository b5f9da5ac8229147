"""A fork's records as frames: which are its own, and what it inherited."""

from typing import Any, cast

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  # as everybody does

import anabranch
from anabranch.errors import BadRequest
from anabranch_spark.expectations.judge import Records
from anabranch_spark.gate.task import Found
from anabranch_spark.jobs.session import described

FORMAT = "anabranch"
_ORIGINS_MAX = 1_000


class Reader:
    """Reads logs of one service by name."""

    def __init__(self, spark: SparkSession, url: str) -> None:
        self._spark, self._url = spark, url

    def log(self, name: str) -> DataFrame:
        """All that is settled."""
        return self._frame(name)

    def fork(self, name: str, found: Found, own: Column) -> Records:
        """Up to the tail that was found, whatever is appended meanwhile."""
        speculative = found.settled < found.tail
        first = min(max(found.fork_point, found.start), found.tail)
        return Records(
            recent=self._frame(name, first, found.tail, speculative=speculative),
            whole=self._frame(name, found.start, found.tail, speculative=speculative),
            own=own,
            logs=self.log,
        )

    def inherited_origins(self, parent: anabranch.Log, found: Found) -> list[int]:
        """The logs whose records the fork got from its parent since the fork point.

        All that a log had of its own goes with it when it is promoted: so no log's records are in
        part the fork's own, and in part inherited.
        """
        there = parent.describe()
        first = max(found.fork_point, there.start)
        last = max(there.tail, first)
        frame = self._frame(parent.name, first, last, speculative=True, columns="origin")
        origins = frame.select("origin").distinct().limit(_ORIGINS_MAX + 1)
        with described(self._spark, f"find whose records {parent.name} has since the fork"):
            rows = origins.collect()
        if len(rows) > _ORIGINS_MAX:
            reason = f"records of more than {_ORIGINS_MAX} logs were promoted into its parent"
            raise BadRequest("tell the fork's own records", reason)
        return [int(row[0]) for row in rows]

    def _frame(
        self,
        name: str,
        first: int | None = None,
        end: int | None = None,
        *,
        speculative: bool = False,
        columns: str | None = None,
    ) -> DataFrame:
        reader = self._spark.read.format(FORMAT).option("service", self._url).option("log", name)
        if first is not None:
            reader = reader.option("from", str(first))
        if end is not None:
            reader = reader.option("to", str(end))
        if columns is not None:
            reader = reader.option("columns", columns)
        if speculative:
            reader = reader.option("speculative", "true")
        return reader.load()


def found(log: anabranch.Log) -> Found:
    """As the service describes it now."""
    described = log.describe()
    return Found(
        id=described.id,
        parent=described.parent,
        fork_point=described.fork_point,
        start=described.start,
        tail=described.tail,
        settled=described.settled,
        own_records=described.own_records,
    )


def appended_to(log: int) -> Column:
    return F.col("origin") == F.lit(log)


def inherited_from(origins: list[int]) -> Column:
    return cast("Any", F.col("origin")).isin(origins)
