"""Which records miss an expectation, as a Spark expression: never null, true for a miss."""

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any, cast

from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  # as everybody does
from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    DoubleType,
    FloatType,
    NumericType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from anabranch.errors import BadRequest
from anabranch_spark.expectations.decode import (
    KEYS,
    RECORD,
    column,
    is_collection,
    same_type,
    type_named,
    type_of,
)
from anabranch_spark.expectations.suite import (
    Expectation,
    Fields,
    Holds,
    InRange,
    Length,
    Literals,
    Matches,
    NotNull,
    OneOf,
)

_DIGITS_MAX = 38
_MOMENTS = (TimestampType, TimestampNTZType, DateType)


def miss(expectation: Expectation, frame: DataFrame) -> Column:
    """BadRequest if this can't be asked of these columns."""
    schema = frame.schema
    match expectation:
        case NotNull():
            type_of(schema, expectation.column)
            return column(expectation.column).isNull()
        case InRange():
            return _or_null(expectation, _within(expectation, schema))
        case OneOf():
            kind = type_of(schema, expectation.column)
            allowed = [literal(each, kind, expectation.column) for each in expectation.values]
            return _or_null(expectation, comparable(expectation.column, kind).isin(*allowed))
        case Matches():
            return _or_null(expectation, _matching(expectation, schema, frame))
        case Length():
            return _or_null(expectation, _so_long(expectation, schema))
        case Holds():
            return ~F.coalesce(_condition(expectation.expression, frame), F.lit(False))
        case Fields():
            return _without_fields(expectation, schema)
        case _:
            raise BadRequest(f"judge {expectation.name!r}", "it isn't judged record by record")


def _or_null(expectation: InRange | OneOf | Matches | Length, keeps: Column) -> Column:
    there = column(expectation.column).isNotNull()
    return ~F.when(there, F.coalesce(keeps, F.lit(False))).otherwise(
        F.lit(expectation.nulls == "pass")
    )


def _within(expectation: InRange, schema: StructType) -> Column:
    name = expectation.column
    kind = type_of(schema, name)
    value = comparable(name, kind)
    keeps = F.lit(True)
    if isinstance(kind, FloatType | DoubleType):
        # Spark takes NaN for the greatest of numbers.
        keeps = ~F.isnan(value)
    if expectation.min is not None:
        keeps &= value >= literal(expectation.min, kind, name)
    if expectation.max is not None:
        keeps &= value <= literal(expectation.max, kind, name)
    return keeps


def _matching(expectation: Matches, schema: StructType, frame: DataFrame) -> Column:
    kind = type_of(schema, expectation.column)
    if not isinstance(kind, StringType | BinaryType):
        raise _misfit(expectation.column, kind, "a pattern is held against text")
    try:
        frame.sparkSession.range(1).select(F.lit("").rlike(expectation.pattern)).collect()
    except PySparkException:
        reason = f"{expectation.pattern!r} is no regular expression of Java's"
        raise BadRequest(f"judge {expectation.name!r}", reason) from None
    return comparable(expectation.column, kind).rlike(expectation.pattern)


def _so_long(expectation: Length, schema: StructType) -> Column:
    kind = type_of(schema, expectation.column)
    value = column(expectation.column)
    if is_collection(kind):
        length = F.size(value)
    elif isinstance(kind, StringType | BinaryType):
        length = F.length(value)
    else:
        raise _misfit(expectation.column, kind, "texts, binary, arrays and maps have a length")
    keeps = F.lit(True)
    if expectation.min is not None:
        keeps &= length >= F.lit(expectation.min)
    if expectation.max is not None:
        keeps &= length <= F.lit(expectation.max)
    return keeps


def _condition(sql: str, frame: DataFrame) -> Column:
    """BadRequest unless it is one condition on these columns."""
    try:
        condition = F.expr(sql)
        selected = frame.select(condition)
        kind = selected.schema.fields[0].dataType
        beyond = _looks_beyond(selected)
    except PySparkException as error:
        reason = " ".join(str(error).split("==")[0].split(";")[0].split())
        raise BadRequest(f"understand {sql!r}", reason) from None
    if not isinstance(kind, BooleanType):
        raise BadRequest(f"understand {sql!r}", f"it is {kind.simpleString()}, not true or false")
    if beyond:
        reason = (
            "it may look at the record only: not at tables and files, not at chance, not at Java"
        )
        raise BadRequest(f"judge by {sql!r}", reason)
    return condition


def _looks_beyond(selected: DataFrame) -> bool:
    """Whether a condition has a query in it, or a function of which Spark doesn't know that the
    same values give the same result: `rand`, and `reflect`, which calls any method of Java's. One
    that ended the JVM with 0 would look like a fork that passes.
    """
    plan: Any = cast("Any", selected)._jdf.queryExecution().analyzed()
    return not plan.deterministic() or not plan.subqueriesAll().isEmpty()


def where(frame: DataFrame, sql: str | None) -> DataFrame:
    return frame if sql is None else frame.where(_condition(sql, frame))


def _without_fields(expectation: Fields, schema: StructType) -> Column:
    for name, wanted in expectation.columns.items():
        found = type_of(schema, name)
        if not same_type(found, type_named(wanted, f"the type of {name!r}")):
            raise _misfit(name, found, f"{wanted} is expected")
    names = {name.split(".")[0] for name in expectation.columns} - {RECORD}
    expected = F.array(*(F.lit(name) for name in sorted(names))).cast("array<string>")
    lacking = F.size(F.array_except(expected, F.col(KEYS))) > 0
    if expectation.others == "miss":
        lacking |= F.size(F.array_except(F.col(KEYS), expected)) > 0
    # Values that aren't JSON have no fields by name.
    return F.coalesce(lacking, F.lit(False))


def comparable(name: str, kind: DataType) -> Column:
    """The column, as text if it is binary: files of expectations hold text."""
    value = column(name)
    return value.cast("string") if isinstance(kind, BinaryType) else value


def literal(value: Literals, kind: DataType, name: str) -> Column:
    """A constant that is compared with a column of this type, exactly."""
    if isinstance(value, bool):
        if isinstance(kind, BooleanType):
            return F.lit(value)
    elif isinstance(value, int | float) and isinstance(kind, NumericType):
        return _number(value, kind, name)
    if isinstance(kind, StringType | BinaryType) and isinstance(value, str):
        return F.lit(value)
    if isinstance(kind, _MOMENTS) and isinstance(value, str):
        return _moment(value, kind, name)
    raise _misfit(name, kind, f"{value!r} can't be compared with that")


def _number(value: float, kind: DataType, name: str) -> Column:
    if isinstance(kind, FloatType | DoubleType):
        # A float's 0.1 is more than a double's.
        return F.lit(float(value)).cast(kind)
    exact = Decimal(str(value))
    written = f"{exact:f}"
    whole, _, part = written.lstrip("-").partition(".")
    digits = len(whole) + len(part)
    if digits > _DIGITS_MAX:
        raise _misfit(name, kind, f"{value!r} has more digits than numbers of this type")
    # No wider than it must be: Spark rounds what it compares if both together are too wide.
    return F.lit(written).cast(f"decimal({digits},{len(part)})")


def _moment(value: str, kind: DataType, name: str) -> Column:
    """Without a zone it is UTC."""
    try:
        if isinstance(kind, DateType):
            return F.lit(date.fromisoformat(value))
        moment = datetime.fromisoformat(value)
    except ValueError:
        raise _misfit(name, kind, f"{value!r} is no time as ISO 8601 has them") from None
    if isinstance(kind, TimestampNTZType):
        return F.lit(moment.replace(tzinfo=None).isoformat(sep=" ")).cast("timestamp_ntz")
    aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return F.lit(aware)


def _misfit(name: str, kind: DataType, why: str) -> BadRequest:
    return BadRequest(f"judge column {name!r}", f"its type is {kind.simpleString()}: {why}")
