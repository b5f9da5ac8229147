"""Columns of a frame that becomes records."""

import pytest

from anabranch.errors import BadRequest
from anabranch_spark.sink.columns import Columns, input_columns

HEADERS = "array<struct<name:string,value:binary>>"


def test_a_value_is_enough() -> None:
    assert input_columns([("value", "binary")]) == Columns(value=0)


def test_columns_are_found_in_any_order() -> None:
    fields = [("timestamp", "timestamp"), ("headers", HEADERS), ("key", "string")]
    assert input_columns([*fields, ("value", "string")]) == Columns(3, 2, 1, 0)


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ([], "without a column 'value'.*to_json"),
        ([("key", "binary")], "without a column 'value'"),
        ([("value", "bigint")], "column 'value' of type bigint.*binary or string: cast"),
        ([("value", "binary"), ("headers", "map<string,binary>")], "column 'headers'"),
        ([("value", "binary"), ("timestamp", "timestamp_ntz")], "must be timestamp: cast"),
        ([("value", "binary"), ("value", "binary")], "twice"),
        ([("value", "binary"), ("position", "bigint")], "'position'.*drop the column"),
        ([("value", "binary"), ("log", "string")], "'log'.*drop the column"),
        ([("Value", "binary")], "call it 'value'"),
        ([("value", "binary"), ("price", "double")], "'price'.*drop it, or put it into"),
    ],
)
def test_what_no_record_can_hold_is_refused_by_name(
    fields: list[tuple[str, str]], says: str
) -> None:
    with pytest.raises(BadRequest, match=says):
        input_columns(fields)
