"""Records as the columns that expectations name: Spark expressions, no job is run here."""

from difflib import get_close_matches
from typing import Any, cast

from pyspark.errors import ParseException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  # as everybody does
from pyspark.sql.types import ArrayType, DataType, MapType, StringType, StructField, StructType

from anabranch.errors import BadRequest
from anabranch_spark.expectations.suite import Bytes, Json, Text, Value
from anabranch_spark.jobs.values import STRICT

PREFIX = "_anabranch_"
OWN = PREFIX + "own"
"""Whether the fork has the record of its own."""
PARSED = PREFIX + "parsed"
RAW = PREFIX + "raw"
"""The value as it is."""
KEYS = PREFIX + "keys"
"""The names of the fields of a JSON object; null where there is none."""
RECORD = "record"
"""A struct of all that a record has beside its value."""
_TEXT, _OBJECT, _CORRUPT = PREFIX + "text", PREFIX + "object", PREFIX + "corrupt"
_STRICT = {**STRICT, "columnNameOfCorruptRecord": _CORRUPT}


def decoded(frame: DataFrame, value: Value, *, own: Column) -> DataFrame:
    """A row for each record: `OWN`, `PARSED`, `RAW`, `KEYS`, `record`, and its value's fields.

    The fields of a value that doesn't parse are null.
    """
    others = [F.col(name) for name in frame.columns if name != "value"]
    base = frame.select(own.alias(OWN), F.struct(*others).alias(RECORD), F.col("value").alias(RAW))
    nothing = F.lit(None).cast("array<string>").alias(KEYS)
    if isinstance(value, Bytes):
        there = F.col(RAW).isNotNull().alias(PARSED)
        return base.select(OWN, RECORD, RAW, there, nothing, F.col(RAW).alias("value"))
    utf8 = F.col(RAW).cast("string")
    valid = F.coalesce(F.is_valid_utf8(utf8), F.lit(False))
    text = base.select(OWN, RECORD, RAW, F.when(valid, utf8).alias(_TEXT))
    if isinstance(value, Text):
        there = F.col(_TEXT).isNotNull().alias(PARSED)
        return text.select(OWN, RECORD, RAW, there, nothing, F.col(_TEXT).alias("value"))
    return _objects(text, value)


def _objects(text: DataFrame, value: Json) -> DataFrame:
    """Exactly one JSON object each.

    Spark's parser stops after the first value, and takes `{"a":1} {"a":2` for an object. So the
    text is parsed as a part of an object and of an array: nothing but one value fits into both.
    """
    fields = fields_of(value)
    wrapper = StructType([StructField("v", fields), StructField(_CORRUPT, StringType())])
    wrapped = F.concat(F.lit('{"v":'), F.col(_TEXT), F.lit("}"))
    listed = F.concat(F.lit("["), F.col(_TEXT), F.lit("]"))
    once = F.json_array_length(listed) == 1
    found = text.select(
        OWN,
        RECORD,
        RAW,
        F.from_json(wrapped, wrapper, _STRICT).alias(_OBJECT),
        F.coalesce(once, F.lit(False)).alias(_TEXT + "_once"),
        F.json_object_keys(F.col(_TEXT)).alias(KEYS),
    )
    whole = F.col(_OBJECT)[_CORRUPT].isNull() & F.col(_OBJECT)["v"].isNotNull()
    parsed = F.coalesce(whole & F.col(_TEXT + "_once"), F.lit(False))
    flagged = found.select(OWN, RECORD, RAW, parsed.alias(PARSED), KEYS, _OBJECT)
    columns = [
        F.when(F.col(PARSED), F.col(_OBJECT)["v"][field.name]).alias(field.name) for field in fields
    ]
    return flagged.select(OWN, RECORD, RAW, PARSED, KEYS, *columns)


def fields_of(value: Json) -> StructType:
    """The declared fields. BadRequest if the declaration can't be read."""
    fields = _from_ddl(value.fields, "value.schema")
    taken: set[str] = set()
    for name in fields.names:
        word = name.lower()
        if word == RECORD or word.startswith(PREFIX):
            raise BadRequest("read value.schema", f"the name {name!r} is taken: rename the field")
        if word in taken:
            raise BadRequest("read value.schema", f"{name!r} is there twice")
        taken.add(word)
    return fields


def type_named(text: str, where: str) -> DataType:
    """A type as Spark's DDL has it, such as `decimal(10,2)`."""
    fields = _from_ddl(f"c {text}", where)
    if len(fields.fields) != 1:
        raise BadRequest(f"read {where}", f"{text!r} is more than one type")
    return fields.fields[0].dataType


def _from_ddl(text: str, where: str) -> StructType:
    try:
        return cast("StructType", StructType.fromDDL(text))
    except ParseException as error:
        reason = " ".join(str(error).split("==")[0].split())
        raise BadRequest(f"read {where}", f"{text!r} isn't Spark's DDL: {reason}") from None


def type_of(schema: StructType, column: str) -> DataType:
    """The type of a column, or of a nested field of it. BadRequest says what there is."""
    found: DataType = schema
    for part in column.split("."):
        fields = _nested(found)
        if fields is None or part not in fields.names:
            raise BadRequest(f"find column {column!r}", _there_is(part, fields))
        found = fields[part].dataType
    return found


def _nested(found: DataType) -> StructType | None:
    return found if isinstance(found, StructType) else None


def _there_is(part: str, fields: StructType | None) -> str:
    if fields is None:
        return f"what is before {part!r} has no fields"
    names = [name for name in fields.names if not name.startswith(PREFIX)]
    near = get_close_matches(part, names, n=1)
    meant = f"did you mean {near[0]!r}? " if near else ""
    return f"there is no {part!r}: {meant}There are {', '.join(names)}"


def column(name: str) -> Column:
    """The column of this name, whatever words of SQL are in it."""
    return F.col(".".join(f"`{part}`" for part in name.split(".")))


def is_collection(kind: DataType) -> bool:
    return isinstance(kind, ArrayType | MapType)


def same_type(one: DataType, other: DataType) -> bool:
    """Whether nulls are allowed doesn't count: no format of values says it."""
    return _plain(cast("Any", one.jsonValue())) == _plain(cast("Any", other.jsonValue()))


def _plain(described: Any) -> Any:
    if isinstance(described, dict):
        left_out = ("nullable", "containsNull", "valueContainsNull", "metadata")
        items = cast("dict[str, Any]", described).items()
        return {key: _plain(each) for key, each in items if key not in left_out}
    if isinstance(described, list):
        return [_plain(each) for each in cast("list[Any]", described)]
    return described
