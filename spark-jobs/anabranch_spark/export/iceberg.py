"""Export to an Iceberg table: one commit for each range, a fork's on a branch of its name.

A range is written to a staging branch, and the target branch is then moved to it, which Iceberg
refuses if the target branch has moved. So two exports at a time can't both add a range, and a
killed one leaves nothing that readers see.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast
from uuid import uuid4

from anabranch.errors import BadRequest, Unavailable
from anabranch_spark.export.frames import Read
from anabranch_spark.export.lineage import (
    MAIN,
    STAGE,
    Branches,
    Commit,
    Snapshot,
    View,
    base,
    next_position,
)
from anabranch_spark.export.ranges import Range
from anabranch_spark.export.report import Written
from anabranch_spark.jobs.session import described
from anabranch_spark.spark_failures import SPARK_FAILURES, cause

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NEEDS = "org.apache.iceberg.spark.Spark3Util"
"""A class of the jars without which nothing here works."""

SETTINGS = {
    "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
}


def warehouse(table: str, folder: str) -> dict[str, str]:
    """Settings of a catalog that keeps its tables in a folder."""
    catalog = f"spark.sql.catalog.{table.partition('.')[0]}"
    return {
        catalog: "org.apache.iceberg.spark.SparkCatalog",
        f"{catalog}.type": "hadoop",
        f"{catalog}.warehouse": folder,
    }


def quoted(*names: str) -> str:
    """An identifier whose parts may have any characters."""
    return ".".join(f"`{each.replace('`', '``')}`" for each in names)


class IcebergTarget:
    """A branch of a table."""

    at_once = 1

    def __init__(
        self,
        spark: "SparkSession",
        *,
        table: str,
        branch: str,
        read: Read,
        log: str,
        view: View,
        parents: Sequence[str],
    ) -> None:
        self._spark, self._read, self._log, self._view = spark, read, log, view
        self._parts, self.branch = table.split("."), branch
        self._table = quoted(*self._parts)
        self._parents = parents

    def next(self) -> int | None:
        """The first position that the branch doesn't have; a fork's branch is made if need be."""
        if not self._spark.catalog.tableExists(self._table):
            return None
        branches = self._branches()
        if self.branch != MAIN and self.branch not in branches.heads:
            found = base(branches, self._parents, self._view)
            if found is None:
                return None
            self._manage().createBranch(self.branch, found.snapshot).commit()
            branches = self._branches()
        done = next_position(branches, self.branch, self._view)
        if done is None and not branches.is_empty(self.branch):
            reason = (
                f"its branch {self.branch} has records, and none of its snapshots says which "
                "positions these are: they weren't exported, or their snapshots have expired"
            )
            raise BadRequest(f"continue an export to {'.'.join(self._parts)}", reason)
        return done

    def write(self, ranges: Sequence[Range]) -> list[Written]:
        return [self._write(each) for each in ranges]

    def _write(self, positions: Range) -> Written:
        frame = self._read(positions)
        if not self._spark.catalog.tableExists(self._table):
            frame.limit(0).writeTo(self._table).using("iceberg").create()
        branches = self._branches()
        done = next_position(branches, self.branch, self._view)
        if done is not None and done != positions.start:
            reason = f"{self.branch} goes on at {done}, and {positions} was to be added to it"
            raise Unavailable(
                f"the table {'.'.join(self._parts)}", f"{reason}: another export writes it"
            )
        stage = self._stage(branches)
        view = self._view
        commit = Commit(self._log, view.log_id, view.generation, positions.start, positions.end)
        writer = frame.writeTo(f"{self._table}.{quoted('branch_' + stage)}")
        for name, value in commit.properties().items():
            writer = writer.option(f"snapshot-property.{name}", value)
        with described(self._spark, f"write {self._log}{positions}"):
            writer.append()
        snapshot = self._advance(stage)
        return Written(positions.start, positions.end, str(snapshot))

    def _stage(self, branches: Branches) -> str:
        """A branch where the target branch ends; those of killed runs go."""
        for name in branches.heads:
            if name.startswith(STAGE):
                self._manage().removeBranch(name).commit()
        stage = STAGE + uuid4().hex
        head = branches.heads.get(self.branch)
        if head is None:
            self._manage().createBranch(stage).commit()
        else:
            self._manage().createBranch(stage, head).commit()
        return stage

    def _advance(self, stage: str) -> int:
        try:
            self._manage().fastForwardBranch(self.branch, stage).commit()
        except SPARK_FAILURES as error:
            reason = f"another program changed its branch {self.branch}: {cause(error)}"
            raise Unavailable(f"the table {'.'.join(self._parts)}", reason) from None
        snapshot = int(self._load().refs().get(stage).snapshotId())
        self._manage().removeBranch(stage).commit()
        self._spark.catalog.refreshTable(self._table)
        return snapshot

    def _branches(self) -> Branches:
        table = self._load()
        heads = {
            str(name): int(reference.snapshotId())
            for name, reference in dict(table.refs()).items()
            if reference.isBranch()
        }
        snapshots = [
            Snapshot(int(each.snapshotId()), _whole(each.parentId()), _texts(each.summary()))
            for each in table.snapshots()
        ]
        return Branches(heads, {each.id: each for each in snapshots})

    def _manage(self) -> Any:
        return self._load().manageSnapshots()

    def _load(self) -> Any:
        """The table as it is now, for what Spark's SQL can't do without an extension."""
        jvm = cast(Any, self._spark)._jvm
        java_session = cast(Any, self._spark)._jsparkSession
        self._spark.catalog.refreshTable(self._table)
        table = jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(java_session, self._table)
        table.refresh()
        return table


def _whole(value: Any) -> int | None:
    return None if value is None else int(value)


def _texts(java_map: Any) -> dict[str, str]:
    return {str(name): str(value) for name, value in dict(java_map).items()}
