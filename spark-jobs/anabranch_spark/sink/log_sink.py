"""A write to a log, from both sides: what its tasks do, and what its driver does."""

from collections.abc import Iterable
from contextlib import suppress

import msgspec

from anabranch.errors import AnabranchError
from anabranch_spark.service import connect
from anabranch_spark.sink import direct, forks
from anabranch_spark.sink.columns import Columns
from anabranch_spark.sink.identity import Version
from anabranch_spark.sink.messages import PartWritten, merged
from anabranch_spark.sink.options import Mode
from anabranch_spark.sink.rows import ArrowBatch, Rows
from anabranch_spark.sink.unnamed import is_unnamed, release_failed, release_others


class LogSink(msgspec.Struct, frozen=True, kw_only=True):
    """Spark sends it to the tasks: it says where and how, and holds no connection."""

    url: str
    log: str
    mode: Mode
    columns: Columns
    execution: str
    """Drawn for each execution of a batch: its forks bear it."""
    fork_ttl_s: int

    def write(self, batches: Iterable[ArrowBatch], *, version: Version, part: int) -> PartWritten:
        """Append one partition. Run by a task; it reads the partition as it appends it."""
        rows = Rows(batches, self.columns, part)
        with connect(self.url) as service:
            log = service.log(self.log, engine="bolt")
            if self.mode is Mode.DIRECT:
                return direct.append(log, rows, version=version, part=part)
            return forks.append(
                log,
                rows,
                version=version,
                part=part,
                execution=self.execution,
                ttl_s=self.fork_ttl_s,
            )

    def commit(
        self, reported: Iterable[PartWritten | None], *, expected: int | None = None
    ) -> None:
        """Make the batch whole; again, that changes nothing. Run by the driver. `expected`: the
        batch's number as the driver knows it.
        """
        written = merged(reported, expected)
        with connect(self.url) as service:
            log = service.log(self.log, engine="bolt")
            if self.mode is Mode.DIRECT:
                direct.commit(log, written)
            else:
                forks.commit(service, log, written)
            if is_unnamed(written.version):
                with suppress(AnabranchError):  # its success doesn't hang on what is forgotten
                    release_others(log, written.version)

    def abort(
        self, reported: Iterable[PartWritten | None], *, version: Version | None = None
    ) -> None:
        """Take back what no commit can have published. Run by the driver. `version`: of a batch
        write, also if no task has reported it.
        """
        if self.mode is Mode.FORK:
            with connect(self.url) as service:
                forks.abort(service, reported)
        elif version is not None and is_unnamed(version):
            with suppress(AnabranchError), connect(self.url) as service:
                release_failed(service.log(self.log, engine="bolt"), version)
