"""One aggregate over the fork's own records, and what each expectation makes of its row."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from msgspec.structs import replace
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  # as everybody does
from pyspark.sql.types import BooleanType, DataType, DateType, NumericType, TimestampType

from anabranch.errors import BadRequest
from anabranch_spark.expectations.decode import PARSED, RAW, column, type_of
from anabranch_spark.expectations.outcome import Histogram, Result, Sample, Status, keeps
from anabranch_spark.expectations.row_checks import miss
from anabranch_spark.expectations.spread import rebinned
from anabranch_spark.expectations.suite import PARSED as PARSING
from anabranch_spark.expectations.suite import (
    AnyExpectation,
    Bound,
    Freshness,
    InRange,
    OfColumn,
    OfRecords,
    References,
    RowCount,
    Suite,
    Unique,
    milliseconds,
)
from anabranch_spark.expectations.words import count, percent, shown

ROWS, GOOD = "rows", "parsed"
SHOWN_BYTES_MAX = 200
_CENTROIDS = 48
_FINITE_MAX = 1.7976931348623157e308
_COLUMN = '{"c":'

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Check:
    """One expectation, as the pass judges it."""

    name: str
    kind: str
    aggregates: Mapping[str, Column]
    result: Callable[[Row], Result]
    misses: Column | None = None
    """Of a record; None if it isn't judged record by record."""
    shows: Column | None = None
    """What a sample shows of a record that misses, as binary."""


def totals() -> dict[str, Column]:
    """What every pass counts: all records, and those that parse."""
    return {ROWS: F.count(F.lit(1)), GOOD: F.count_if(F.col(PARSED))}


def checks(suite: Suite, frame: DataFrame, now: datetime) -> list[Check]:
    """All that one pass can judge. BadRequest says all that can't be asked of the columns."""
    found = [_parses(suite)]
    troubles: list[str] = []
    for index, each in enumerate(suite.expectations):
        try:
            if (check := _check(each, f"x{index}", frame, now)) is not None:
                found.append(check)
        except BadRequest as error:
            troubles.append(f"{each.name!r}: {error}")
    if troubles:
        raise BadRequest("judge these columns", "; ".join(troubles))
    return found


def _check(each: AnyExpectation, alias: str, frame: DataFrame, now: datetime) -> Check | None:
    match each:
        case Unique() | References():
            return None
        case RowCount():
            return _row_count(each)
        case Freshness():
            return _freshness(each, alias, frame, now)
        case _:
            return _of_records(each, alias, frame)


def of_records(
    each: OfRecords, *, judged: int, misses: int, samples: tuple[Sample, ...] = ()
) -> Result:
    """The result of an expectation that is judged record by record."""
    kind = str(each.__struct_config__.tag)
    found = _shares(each.name, kind, judged=judged, misses=misses, at_least=each.at_least)
    return replace(found, samples=samples)


def _shares(name: str, kind: str, *, judged: int, misses: int, at_least: float) -> Result:
    passed = keeps(judged, misses, at_least)
    if judged == 0:
        reason = "there is no record to judge"
    else:
        miss_word = "misses" if misses == 1 else "miss"
        reason = f"{misses:,} of {count(judged, 'record')} {miss_word} it"
        if at_least < 1:
            kept, least = percent(judged - misses, judged), f"{at_least * 100:.10g}%"
            reason += f": {kept} keep to it, {least} must"
    return Result(
        name=name,
        expect=kind,
        status=Status.PASSED if passed else Status.FAILED,
        reason=reason,
        judged=judged,
        misses=misses,
        at_least=at_least,
    )


def _parses(suite: Suite) -> Check:
    at_least = suite.value.at_least

    def result(row: Row) -> Result:
        misses = row[ROWS] - row[GOOD]
        return _shares(PARSING, PARSING, judged=row[ROWS], misses=misses, at_least=at_least)

    return Check(PARSING, PARSING, {}, result, ~F.col(PARSED), _raw())


def _of_records(each: OfRecords, alias: str, frame: DataFrame) -> Check:
    missing = F.col(PARSED) & miss(each, frame)
    aggregates = {alias: F.count_if(missing)}
    spread = _spread(each, frame) if isinstance(each, InRange) else None
    if spread is not None:
        aggregates[f"{alias}s"] = spread

    def result(row: Row) -> Result:
        found = of_records(each, judged=row[GOOD], misses=row[alias])
        if spread is None or not isinstance(each, InRange):
            return found
        return replace(found, histogram=_histogram(each, frame, row[f"{alias}s"]))

    shows = _field(each.column) if isinstance(each, OfColumn) else _raw()
    return Check(each.name, str(each.__struct_config__.tag), aggregates, result, missing, shows)


def _raw() -> Column:
    return F.substring(F.col(RAW), 1, SHOWN_BYTES_MAX)


def _field(name: str) -> Column:
    """As JSON, so that text, numbers and null can be told from one another."""
    return F.substring(F.to_json(F.struct(column(name).alias("c"))), 1, SHOWN_BYTES_MAX).cast(
        "binary"
    )


def sample(position: int, shows: bytes | bytearray | None) -> Sample:
    """Of what `shows` of a check gave for a record."""
    if shows is None:
        return Sample(position, "null")
    text = bytes(shows).decode(errors="backslashreplace")
    if text == "{}":
        text = "null"
    elif text.startswith(_COLUMN):
        text = text.removeprefix(_COLUMN)
        text = text.removesuffix("}") if len(shows) < SHOWN_BYTES_MAX else text
    return Sample(position, shown(text))


def _row_count(each: RowCount) -> Check:
    def result(row: Row) -> Result:
        rows: int = row[ROWS]
        low = 0 if each.min is None else each.min
        passed = low <= rows and (each.max is None or rows <= each.max)
        upper = "or more" if each.max is None else f"to {each.max:,}"
        return _plain(each, passed, f"{count(rows, 'record')} of its own, {low:,} {upper} expected")

    return Check(each.name, "row_count", {}, result)


def _freshness(each: Freshness, alias: str, frame: DataFrame, now: datetime) -> Check:
    kind = type_of(frame.schema, each.column)
    if not isinstance(kind, TimestampType):
        reason = f"its type is {kind.simpleString()}, and freshness needs a timestamp"
        raise BadRequest(f"judge column {each.column!r}", reason)
    newest = F.max(F.when(F.col(PARSED), column(each.column)))
    # As a number: Python's moments end with the year 9999, and Spark's don't.
    aggregates = {alias: F.unix_micros(newest)}

    def result(row: Row) -> Result:
        micros: int | None = row[alias]
        if micros is None:
            return _plain(each, False, f"no record has a moment in {each.column}")
        age_ms = (_micros(now) - micros) / 1_000
        if age_ms > milliseconds(each.within):
            return _plain(each, False, f"the newest is {_ago(age_ms)} old, {each.within} allowed")
        if -age_ms > milliseconds(each.ahead):
            reason = f"the newest lies {_ago(-age_ms)} ahead of now, {each.ahead} allowed"
            return _plain(each, False, reason)
        return _plain(each, True, f"the newest is {_ago(max(age_ms, 0))} old")

    return Check(each.name, "freshness", aggregates, result)


def _micros(moment: datetime) -> int:
    return (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)


def _ago(age_ms: float) -> str:
    for unit, size in (("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000)):
        if age_ms >= 2 * size:
            return f"{age_ms / size:,.0f} {unit}"
    return f"{age_ms:.0f} ms"


def _plain(each: RowCount | Freshness, passed: bool, reason: str) -> Result:
    kind = str(each.__struct_config__.tag)
    status = Status.PASSED if passed else Status.FAILED
    return Result(name=each.name, expect=kind, status=status, reason=reason)


def _spread(each: InRange, frame: DataFrame) -> Column | None:
    """None for types whose values have no place on a line of numbers."""
    kind = type_of(frame.schema, each.column)
    if not _on_a_line(kind):
        return None
    value = column(each.column)
    value = value.cast("timestamp") if isinstance(kind, DateType) else value
    number = value.cast("double")
    finite = F.when(F.abs(number) <= _FINITE_MAX, number)
    return F.histogram_numeric(finite, F.lit(_CENTROIDS))


def _on_a_line(kind: DataType) -> bool:
    numbers = isinstance(kind, NumericType) and not isinstance(kind, BooleanType)
    return numbers or isinstance(kind, TimestampType | DateType)


def _histogram(each: InRange, frame: DataFrame, found: Sequence[Any] | None) -> Histogram:
    times = not isinstance(type_of(frame.schema, each.column), NumericType)
    centroids = [(float(point["x"]), float(point["y"])) for point in found or ()]
    return Histogram(
        bins=rebinned(centroids),
        min=_bound(each.min),
        max=_bound(each.max),
        times=times,
    )


def _bound(bound: Bound | None) -> float | None:
    if bound is None or not isinstance(bound, str):
        return None if bound is None else float(bound)
    moment = datetime.fromisoformat(bound)
    aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return aware.timestamp()
