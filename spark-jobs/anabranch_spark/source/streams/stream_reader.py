"""The reader of a stream, as Spark 4.1 and 4.2 call it."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from anabranch_spark.options import ReadOptions, read_options
from anabranch_spark.plain_errors import plain, plain_rows
from anabranch_spark.service import address
from anabranch_spark.source.batch_reader import LogPartition, columns_of
from anabranch_spark.source.streams.offsets import as_json, from_json

if TYPE_CHECKING:
    from anabranch_spark.source.arrow import RecordBatch
    from anabranch_spark.source.streams.stream import Stream

    class _AvailableNow:
        pass

    limits: Any
else:
    try:
        from pyspark.sql.streaming import datasource as limits

        _AvailableNow = limits.SupportsTriggerAvailableNow
    except ImportError:  # before 4.2
        limits = None

        class _AvailableNow:
            pass


class StreamReader(_AvailableNow, DataSourceStreamReader):
    """A stream of one log. Tasks get it by pickling, before it has connected to anything."""

    def __init__(self, options: ReadOptions, columns: Sequence[str]) -> None:
        self._options, self._columns = options, columns
        self._service = address(options.service)
        self._run: Stream | None = None

    @plain
    def initialOffset(self) -> dict[str, int]:  # noqa: N802  # Spark calls it so
        return as_json(self._stream().initial())

    @plain
    def latestOffset(  # noqa: N802
        self, start: dict[str, Any] | None = None, limit: object = None
    ) -> dict[str, int]:
        """Spark 4.1 passes nothing. As `limit` 4.2 passes what `getDefaultReadLimit` said, or
        under `trigger(once=True)` that everything is to be read, whatever the options say.
        """
        known = None if start is None else from_json(start)
        whole = limits is not None and isinstance(limit, limits.ReadAllAvailable)
        return as_json(self._stream().latest(known, whole=whole))

    def getDefaultReadLimit(self) -> Any:  # noqa: N802
        """For Spark 4.2, which takes one kind of limit, and of its own kinds only. The stream keeps
        to all that the options say as long as Spark gives it back.
        """
        options = self._options
        if options.records_max is not None:
            return limits.ReadMaxRows(options.records_max)
        if options.bytes_max is not None:
            return limits.ReadMaxBytes(options.bytes_max)
        if options.records_min:
            return limits.ReadMinRows(options.records_min)
        return limits.ReadAllAvailable()

    @plain
    def reportLatestOffset(self) -> dict[str, int]:  # noqa: N802
        """For the progress that Spark 4.2 shows."""
        return as_json(self._stream().settled())

    @plain
    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Spark 4.2: read what there is now, and then end."""
        self._stream().aim()

    @plain
    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        parts = self._stream().parts(from_json(start), from_json(end))
        return [LogPartition(part) for part in parts]

    def read(  # pyright: ignore[reportIncompatibleMethodOverride]  # Spark gives what was planned
        self, partition: LogPartition
    ) -> "Iterator[RecordBatch]":
        from anabranch_spark.source.reading import read_part

        rows = read_part(
            partition.part,
            self._columns,
            service=self._service,
            ask_broker=self._options.ask_broker,
        )
        return plain_rows(rows)

    @plain
    def commit(self, end: dict[str, Any]) -> None:
        self._stream().commit(from_json(end))

    def stop(self) -> None:
        if self._run is not None:
            self._run.close()
            self._run = None

    def _stream(self) -> "Stream":
        if self._run is None:
            from anabranch_spark.source.streams.stream import Stream

            self._run = Stream(self._options, self._service)
        return self._run


def stream_reader(given: Mapping[str, str], schema: StructType) -> StreamReader:
    """The reader that these options ask for."""
    options = read_options(given, "stream")
    return StreamReader(options, columns_of(options, schema))
