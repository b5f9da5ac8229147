"""Values that are JSON, as columns of a schema; those that aren't are found, never dropped."""

import re
from typing import TYPE_CHECKING, NamedTuple

from anabranch.errors import BadRequest

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import StructType

UNDECODABLE = "isn't JSON of the schema"
_BAD_VALUE = re.compile(rf"the value at position \d+ {re.escape(UNDECODABLE)}")
_CORRUPT = "_anabranch_corrupt"
STRICT = {"mode": "PERMISSIVE", "allowSingleQuotes": "false", "allowNonNumericNumbers": "false"}
"""JSON as its standard has it: Spark's parser takes more."""


class Parsed(NamedTuple):
    """What becomes of the column `value`."""

    value: "Column"
    """A struct; null for a record without a value, and where `wrong` is true."""
    wrong: "Column"
    """There is a value, and it isn't JSON of the schema."""


def schema_of(ddl: str) -> "StructType":
    """BadRequest if it can't be understood."""
    from pyspark.errors import PySparkException
    from pyspark.sql.types import StructType

    from anabranch_spark.spark_failures import cause

    try:
        schema = StructType.fromDDL(ddl)
    except PySparkException as error:
        raise BadRequest("decode values", f"{ddl!r} is no schema: {cause(error)}") from None
    if not isinstance(schema, StructType):
        raise BadRequest("decode values", f"{ddl!r} is one type, and no schema of columns")
    if not schema.names or _CORRUPT in schema.names:
        raise BadRequest("decode values", f"the schema has no columns, or one named {_CORRUPT}")
    return schema


def parsed(schema: "StructType") -> Parsed:
    """Read the column `value`, which is binary, by this schema: exactly one JSON object, in UTF-8.

    Spark's parser stops after the first value, and takes `{"a":1} {"a":2` for an object. So the
    text is parsed as a part of an object and of an array: nothing but one value fits into both.
    """
    from pyspark.sql import functions as sql
    from pyspark.sql.types import StringType, StructType

    text = sql.col("value").cast("string")
    read = StructType().add("v", schema).add(_CORRUPT, StringType())
    options = {**STRICT, "columnNameOfCorruptRecord": _CORRUPT}
    found = sql.from_json(sql.concat(sql.lit('{"v":'), text, sql.lit("}")), read, options)
    once = sql.json_array_length(sql.concat(sql.lit("["), text, sql.lit("]"))) == 1
    whole = found[_CORRUPT].isNull() & found["v"].isNotNull()
    fits = sql.coalesce(sql.is_valid_utf8(text) & once & whole, sql.lit(False))
    struct = sql.struct(*(found["v"][name].alias(name) for name in schema.names))
    return Parsed(sql.when(fits, struct), sql.col("value").isNotNull() & ~fits)


def decoded(frame: "DataFrame", schema: "str | StructType") -> "DataFrame":
    """The column `value` as a struct. A value that isn't JSON of the schema fails the query."""
    from pyspark.sql import functions as sql

    value, wrong = parsed(schema_of(schema) if isinstance(schema, str) else schema)
    where = sql.concat(
        sql.lit("the value at position "), sql.col("position"), sql.lit(f" {UNDECODABLE}")
    )
    return frame.withColumn("value", sql.when(wrong, sql.raise_error(where)).otherwise(value))


def undecodable(error: BaseException) -> str | None:
    """The sentence about the value that made a query fail, if that was why."""
    found = _BAD_VALUE.search(str(error))
    return found[0] if found else None
