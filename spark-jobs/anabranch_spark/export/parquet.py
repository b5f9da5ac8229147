"""Export to Parquet files: each range is a file of that name, or isn't there."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import repeat
from typing import TYPE_CHECKING
from uuid import uuid4

from anabranch.errors import Damage, Unavailable
from anabranch_spark.export.folder import HadoopFolder
from anabranch_spark.export.frames import Read
from anabranch_spark.export.names import STAGING, file_name, is_data
from anabranch_spark.export.progress import (
    Manifest,
    check_same,
    next_position,
    publish,
    read_manifest,
)
from anabranch_spark.export.ranges import Range
from anabranch_spark.export.report import Written
from anabranch_spark.jobs.session import described

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

AT_ONCE_MAX = 32
"""Ranges that are written side by side: each holds a scan plan, and a log has at most 100."""


class ParquetTarget:
    """A folder of one log's files, written by one export at a time."""

    def __init__(
        self, spark: "SparkSession", folder: HadoopFolder, read: Read, wanted: Manifest
    ) -> None:
        self._spark, self._folder, self._read = spark, folder, read
        self._manifest = wanted
        self.at_once = min(AT_ONCE_MAX, spark.sparkContext.defaultParallelism)

    def next(self) -> int | None:
        """The first position that the folder doesn't have."""
        names = self._folder.names()
        manifest = read_manifest(self._folder, names)
        check_same(manifest, self._manifest)
        if manifest is not None:
            self._manifest = manifest
        return next_position(manifest, names)

    def write(self, ranges: Sequence[Range]) -> list[Written]:
        """All of them or, if it is killed, the first few."""
        # What is left of runs that were killed.
        self._folder.delete(STAGING)
        stage = f"{STAGING}/{uuid4().hex}"
        try:
            # One job for each file, so that no plan of Spark's decides what is in which.
            with ThreadPoolExecutor(len(ranges)) as threads:
                paths = list(threads.map(self._stage, repeat(stage), ranges))
            staged = list(zip(paths, ranges, strict=True))
            self._manifest = publish(self._folder, staged, self._manifest)
        finally:
            self._folder.delete(STAGING)
        return [Written(each.start, each.end, file_name(each)) for each in ranges]

    def _stage(self, stage: str, positions: Range) -> str:
        """Write a range under another name, and look whether the file has all of it."""
        path = f"{stage}/{positions.start}"
        with described(self._spark, f"write {self._manifest.log}{positions}"):
            self._read(positions).coalesce(1).write.parquet(f"{self._folder.path}/{path}")
        files = [each for each in self._folder.below(path) if is_data(each)]
        if len(files) != 1:
            raise Unavailable(f"the file of {positions}", f"Spark wrote {len(files)} files")
        self._verify(files[0], positions)
        return files[0]

    def _verify(self, file: str, positions: Range) -> None:
        """It has the positions of its range, all of them and no other."""
        from pyspark.sql import functions as sql

        written = self._spark.read.parquet(f"{self._folder.path}/{file}")
        position = sql.col("position")
        counts = written.agg(
            sql.count(sql.lit(1)),
            sql.count_distinct(position),
            sql.min(position),
            sql.max(position),
        )
        with described(self._spark, f"read back {self._manifest.log}{positions}"):
            found = counts.first()
        wanted = (positions.records, positions.records, positions.start, positions.end - 1)
        if found is None or tuple(found) != wanted:
            reason = f"count, distinct, first and last are {found}, and should be {wanted}"
            raise Damage(reason=f"the file of {positions} isn't what was read: {reason}")
