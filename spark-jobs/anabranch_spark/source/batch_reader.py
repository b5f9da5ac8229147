"""The reader of a batch query, as Spark calls it."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, cast

from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from anabranch.errors import BadRequest
from anabranch_spark.options import ReadOptions, read_options
from anabranch_spark.service import address, connect
from anabranch_spark.source.parts import Part, packed, unpacked
from anabranch_spark.source.schema import available, ddl

if TYPE_CHECKING:
    import pyarrow as pa


class LogPartition(InputPartition):
    """A part of a scan, as bytes: it is sent to executors as it is."""

    def __init__(self, part: Part) -> None:
        super().__init__(packed(part))
        self.name = part.name

    def __repr__(self) -> str:
        return self.name

    @property
    def part(self) -> Part:
        return unpacked(cast("bytes", self.value))


class BatchReader(DataSourceReader):
    """One scan of one or more logs. It is pickled, so it holds neither connection nor token."""

    def __init__(self, options: ReadOptions, columns: Sequence[str]) -> None:
        self._options, self._columns = options, columns
        self._service = address(options.service)

    def partitions(self) -> Sequence[InputPartition]:
        from anabranch_spark.source.planning import planned

        with connect(self._service) as service:
            return [LogPartition(part) for part in planned(service, self._options)]

    def read(  # pyright: ignore[reportIncompatibleMethodOverride]  # Spark gives what was planned
        self, partition: LogPartition | None
    ) -> "Iterator[pa.RecordBatch]":
        if partition is None:  # Spark's word for no partitions at all
            return iter(())
        from anabranch_spark.source.reading import read_part

        return read_part(
            partition.part,
            self._columns,
            service=self._service,
            ask_broker=self._options.ask_broker,
        )


def batch_reader(given: Mapping[str, str], schema: StructType) -> BatchReader:
    """The reader that these options ask for. Spark's workers get it by pickling."""
    options = read_options(given, "batch")
    return BatchReader(options, columns_of(options, schema))


def columns_of(options: ReadOptions, schema: StructType) -> tuple[str, ...]:
    """The columns to give: those of the schema that was asked for, if each is one of the log's."""
    known = available(several=len(options.logs) > 1)
    names = tuple(field.name for field in schema.fields)
    for field in schema.fields:
        if field.name not in known:
            reason = f"the log has none of this name; it has {', '.join(known)}"
            raise BadRequest(f"column {field.name}", reason)
    expected = StructType.fromDDL(ddl(names))
    for field, right in zip(schema.fields, expected.fields, strict=True):
        if field.dataType != right.dataType:
            found = field.dataType.simpleString()
            reason = f"it is {right.dataType.simpleString()}, not {found}"
            raise BadRequest(f"column {field.name}", reason)
    return names
