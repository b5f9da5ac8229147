"""Export to a Delta table: one commit for each range, its end is the version of a transaction.

Delta keeps the highest version of each application in the table itself, and does nothing when a
version is written again.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

import msgspec

from anabranch.errors import BadRequest, Unavailable
from anabranch_spark.export.frames import Read
from anabranch_spark.export.lineage import Commit, View
from anabranch_spark.export.ranges import Range
from anabranch_spark.export.report import Written
from anabranch_spark.jobs.session import described

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NEEDS = "org.apache.spark.sql.delta.DeltaLog"
"""A class of the jars without which nothing here works."""

SETTINGS = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}
APPLICATION = "anabranch-export-"


def application(log_id: int) -> str:
    """`txnAppId` of a log's exports."""
    return f"{APPLICATION}{log_id}"


def done_by(transactions: dict[str, int], view: View, log: str) -> int | None:
    """The first position that a table doesn't have, as its transactions say.

    BadRequest if it has another log's records: rows don't say which log they are of.
    """
    others = [
        name
        for name in transactions
        if name.startswith(APPLICATION) and name != application(view.log_id)
    ]
    if others:
        reason = f"it has the records of the log with id {others[0].removeprefix(APPLICATION)}"
        raise BadRequest(f"export {log} to a Delta table", f"{reason}: choose another table")
    return transactions.get(application(view.log_id))


class DeltaTarget:
    """A table by its path."""

    at_once = 1

    def __init__(
        self, spark: "SparkSession", *, path: str, read: Read, log: str, view: View
    ) -> None:
        self._spark, self._path, self._read = spark, path, read
        self._log, self._view = log, view

    def next(self) -> int | None:
        return done_by(self._transactions(), self._view, self._log)

    def write(self, ranges: Sequence[Range]) -> list[Written]:
        return [self._write(each) for each in ranges]

    def _write(self, positions: Range) -> Written:
        done = self.next()
        if done is not None and done != positions.start:
            reason = (
                f"it goes on at {done}, and {positions} was to be added: another export writes it"
            )
            raise Unavailable(f"the table {self._path}", reason)
        view = self._view
        commit = Commit(self._log, view.log_id, view.generation, positions.start, positions.end)
        about = msgspec.json.encode(commit.properties()).decode()
        writer = self._read(positions).write.format("delta").mode("append")
        writer = writer.options(
            txnAppId=application(view.log_id), txnVersion=str(positions.end), userMetadata=about
        )
        with described(self._spark, f"write {self._log}{positions}"):
            writer.save(self._path)
        return Written(positions.start, positions.end, str(self._log_of_table().version()))

    def _transactions(self) -> dict[str, int]:
        found = self._log_of_table()
        if found.version() < 0:
            return {}
        scala = found.transactions()
        converters = cast(Any, self._spark)._jvm.scala.jdk.javaapi.CollectionConverters
        return {str(name): int(version) for name, version in dict(converters.asJava(scala)).items()}

    def _log_of_table(self) -> Any:
        """The table's snapshot as it is now; of version -1 if there is no table."""
        jvm = cast(Any, self._spark)._jvm
        java_session = cast(Any, self._spark)._jsparkSession
        jvm.org.apache.spark.sql.delta.DeltaLog.invalidateCache(
            java_session, jvm.org.apache.hadoop.fs.Path(self._path)
        )
        log = jvm.org.apache.spark.sql.delta.DeltaLog.forTable(java_session, self._path)
        return log.unsafeVolatileSnapshot()
