"""The columns as Spark is told of them."""

from anabranch_spark.source.schema import available, ddl, simple_type


def test_there_is_a_column_of_the_log_only_if_several_are_read() -> None:
    assert available(several=True) == ("log", *available(several=False))


def test_columns_are_described_in_their_order() -> None:
    assert ddl(("value", "log")) == "value binary, log string"


def test_types_have_the_names_of_sparks_messages() -> None:
    assert simple_type("headers") == "array<struct<name:string,value:binary>>"
    assert simple_type("position") == "bigint"
