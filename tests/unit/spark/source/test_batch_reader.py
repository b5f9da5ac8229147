"""The reader of a batch query, where there is no session: as Spark's workers make and send it."""

import pickle

import pytest
from pyspark.sql import datasource
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from anabranch.errors import BadRequest
from anabranch_spark.source.batch_reader import BatchReader, PushdownReader, batch_reader

OPTIONS = {"service": "anabranch://127.0.0.1:1", "log": "orders"}
HEADER = StructType([StructField("name", StringType()), StructField("value", BinaryType())])
ALL = StructType(
    [
        StructField("position", LongType()),
        StructField("timestamp", TimestampType()),
        StructField("key", BinaryType()),
        StructField("headers", ArrayType(HEADER)),
    ]
)


def test_a_reader_is_made_and_sent_without_a_session() -> None:
    reader = pickle.loads(pickle.dumps(batch_reader(OPTIONS, ALL)))
    assert type(reader) is BatchReader
    assert [*reader.read(None)] == []


@pytest.mark.parametrize(
    ("field", "says"),
    [
        (StructField("value", StringType()), "column value: its type is binary, not string"),
        (StructField("valeu", BinaryType()), "column valeu: the log has none of this name"),
        (StructField("log", StringType()), "column log: the log has none of this name"),
    ],
)
def test_a_schema_that_no_log_has_is_refused(field: StructField, says: str) -> None:
    with pytest.raises(BadRequest, match=says):
        batch_reader(OPTIONS, StructType([field]))


def test_only_a_reader_that_may_push_filters_has_the_method() -> None:
    plain, pushing = batch_reader(OPTIONS, ALL), batch_reader({**OPTIONS, "pushdown": "true"}, ALL)
    assert type(plain).pushFilters is datasource.DataSourceReader.pushFilters
    assert isinstance(pushing, PushdownReader)
    filters: list[datasource.Filter] = [
        datasource.GreaterThan(("position",), 3),
        datasource.EqualTo(("key",), b"x"),
        datasource.Not(datasource.EqualTo(("position",), 5)),
        datasource.In(("position",), (5, 6)),
        datasource.IsNotNull(("position",)),
        datasource.LessThan(("position",), 9),
    ]
    assert [*pushing.pushFilters(filters)] == filters[1:4]
