"""The data source `anabranch`, as Spark calls it."""

from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource
from pyspark.sql.types import StructType

from anabranch_spark.plain_errors import plain

if TYPE_CHECKING:
    from pyspark.sql.datasource import (
        DataSourceArrowWriter,
        DataSourceReader,
        DataSourceStreamArrowWriter,
        DataSourceStreamReader,
    )


class AnabranchDataSource(DataSource):
    """Logs and forks by name: batch and stream, reading and writing."""

    @classmethod
    def name(cls) -> str:
        return "anabranch"

    @plain
    def schema(self) -> str:
        from anabranch_spark.options import read_options
        from anabranch_spark.source.schema import ddl

        return ddl(read_options(self.options).columns)

    @plain
    def reader(self, schema: StructType) -> "DataSourceReader":
        from anabranch_spark.source.batch_reader import batch_reader

        return batch_reader(self.options, schema)

    @plain
    def streamReader(  # noqa: N802  # Spark calls it so
        self, schema: StructType
    ) -> "DataSourceStreamReader":
        from anabranch_spark.source.streams.stream_reader import stream_reader

        return stream_reader(self.options, schema)

    @plain
    def writer(self, schema: StructType, overwrite: bool) -> "DataSourceArrowWriter":
        from anabranch_spark.sink.batch_writer import batch_writer

        return batch_writer(self.options, schema, overwrite=overwrite)

    @plain
    def streamWriter(  # noqa: N802  # Spark calls it so
        self, schema: StructType, overwrite: bool
    ) -> "DataSourceStreamArrowWriter":
        from anabranch_spark.sink.stream_writer import stream_writer

        return stream_writer(self.options, schema, overwrite=overwrite)
