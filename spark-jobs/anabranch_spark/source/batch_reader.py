"""The reader of a batch query, as Spark calls it."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, cast

from pyspark.sql import datasource
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from anabranch.errors import BadRequest
from anabranch_spark.options import ReadOptions, read_options
from anabranch_spark.plain_errors import plain, plain_rows
from anabranch_spark.service import address, connect
from anabranch_spark.source.parts import Part, packed, unpacked
from anabranch_spark.source.predicates import ALL, Comparison, Filter, narrowed
from anabranch_spark.source.schema import available, simple_type

if TYPE_CHECKING:
    from anabranch_spark.source.arrow import RecordBatch

_COMPARISONS: dict[type[datasource.Filter], Comparison] = {
    datasource.EqualTo: "=",
    datasource.EqualNullSafe: "=",
    datasource.GreaterThan: ">",
    datasource.GreaterThanOrEqual: ">=",
    datasource.LessThan: "<",
    datasource.LessThanOrEqual: "<=",
    datasource.IsNotNull: "not null",
}


class LogPartition(InputPartition):
    """A part of a scan, as bytes: they are sent to executors as they are."""

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
        self._within = ALL

    @plain
    def partitions(self) -> Sequence[InputPartition]:
        from anabranch_spark.source.planning import planned

        with connect(self._service) as service:
            parts = planned(service, self._options, self._within)
        return [LogPartition(part) for part in parts]

    def read(  # pyright: ignore[reportIncompatibleMethodOverride]  # Spark gives what was planned
        self, partition: LogPartition | None
    ) -> "Iterator[RecordBatch]":
        if partition is None:  # in the place of no partitions at all
            return iter(())
        from anabranch_spark.source.reading import read_part

        rows = read_part(
            partition.part,
            self._columns,
            service=self._service,
            ask_broker=self._options.ask_broker,
        )
        return plain_rows(rows)


class PushdownReader(BatchReader):
    """Filters on `position` cut its plan. Spark refuses such a reader where its setting for
    pushing filters is off.
    """

    def pushFilters(  # noqa: N802  # Spark calls it so
        self, filters: list[datasource.Filter]
    ) -> Iterable[datasource.Filter]:
        for each in filters:
            within = None
            comparison = _COMPARISONS.get(type(each))
            if comparison is not None:
                column: tuple[str, ...] = tuple(getattr(each, "attribute", ()))
                value: object = getattr(each, "value", None)
                within = narrowed(self._within, Filter(column, comparison, value))
            if within is None:
                yield each
            else:
                self._within = within


def batch_reader(given: Mapping[str, str], schema: StructType) -> BatchReader:
    """The reader that these options ask for."""
    options = read_options(given, "batch")
    kind = PushdownReader if options.pushdown else BatchReader
    return kind(options, columns_of(options, schema))


def columns_of(options: ReadOptions, schema: StructType) -> tuple[str, ...]:
    """The columns to give: those of the schema that was asked for, if each is one of the log's."""
    known = available(several=len(options.logs) > 1)
    names = tuple(field.name for field in schema.fields)
    for name in names:
        if name not in known:
            reason = f"the log has none of this name; it has {', '.join(known)}"
            raise BadRequest(f"column {name}", reason)
    for field in schema.fields:
        # Types are compared by name: only a process with a session could parse one.
        found, right = field.dataType.simpleString(), simple_type(field.name)
        if found != right:
            raise BadRequest(f"column {field.name}", f"its type is {right}, not {found}")
    return names
