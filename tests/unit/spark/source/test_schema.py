"""The columns as Spark is told of them."""

from anabranch_spark.source.schema import available, ddl


def test_there_is_a_column_of_the_log_only_if_several_are_read() -> None:
    assert available(several=True) == ("log", *available(several=False))


def test_columns_are_described_in_their_order() -> None:
    assert ddl(("value", "log")) == "value binary, log string"
