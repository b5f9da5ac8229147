"""What the types of a suite can't say: names that repeat, bounds that no value lies between."""

import math
from collections.abc import Iterator, Sequence

from anabranch_spark.expectations.suite import (
    PARSED,
    AnyExpectation,
    Fields,
    Freshness,
    InRange,
    Length,
    OfColumn,
    OneOf,
    References,
    RowCount,
    Suite,
    Unique,
)
from anabranch_spark.expectations.yaml_tree import Path

_DIGITS_MAX = 38
"""Of whole numbers: Spark's decimals have no more."""

Problem = tuple[Path, str]


def problems(suite: Suite) -> Iterator[Problem]:
    """Where something can't be, and why. None: everything declared can be judged, by what is known
    without the data.
    """
    first: dict[str, int] = {}
    for index, each in enumerate(suite.expectations):
        at: Path = ("expectations", index)
        if each.name in first:
            yield (*at, "name"), f"expectations[{first[each.name]}] has this name already"
        first.setdefault(each.name, index)
        if each.name == PARSED:
            yield (*at, "name"), f"{PARSED!r} is what every suite has: use another name"
        if not each.name.isprintable():
            yield (*at, "name"), "a name has printable characters only"
        for path, reason in _of(each):
            yield (*at, *path), reason


def _of(each: AnyExpectation) -> Iterator[Problem]:
    for key, column in _columns(each):
        if "`" in column or not all(column.split(".")):
            yield (key,), f"{column!r} is no column: names with dots between, without backticks"
    if isinstance(each, InRange | Length | RowCount):
        yield from _bounds(each)
    elif isinstance(each, OneOf):
        yield from _literals(each)
    elif isinstance(each, Unique):
        yield from _distinct("columns", each.columns)
    elif isinstance(each, References):
        yield from _reference(each)


def _columns(each: AnyExpectation) -> Iterator[tuple[str, str]]:
    if isinstance(each, OfColumn | Freshness):
        yield "column", each.column
    elif isinstance(each, Unique | References | Fields):
        yield from (("columns", column) for column in each.columns)
    if isinstance(each, References):
        yield from (("to", column) for column in each.to)


def _bounds(each: InRange | Length | RowCount) -> Iterator[Problem]:
    if each.min is None and each.max is None:
        yield (), "give `min`, `max` or both"
        return
    for key, bound in (("min", each.min), ("max", each.max)):
        if (reason := _unfit(bound)) is not None:
            yield (key,), reason
            return
    if each.min is None or each.max is None:
        return
    if isinstance(each.min, str) or isinstance(each.max, str):
        if not (isinstance(each.min, str) and isinstance(each.max, str)):
            yield ("max",), "`min` and `max` must both be numbers, or both text"
    elif each.min > each.max:
        yield ("max",), f"nothing lies between {each.min} and {each.max}"


def _unfit(literal: object) -> str | None:
    if isinstance(literal, float) and not math.isfinite(literal):
        return f"{literal} is no number that values can be compared with"
    if isinstance(literal, int) and abs(literal) >= 10**_DIGITS_MAX:
        return f"a whole number has {_DIGITS_MAX} digits at most"
    return None


def _literals(each: OneOf) -> Iterator[Problem]:
    kinds = {_kind(value) for value in each.values}
    if len(kinds) > 1:
        found = " and ".join(sorted(kinds))
        yield ("values",), f"they are of different kinds ({found}): put text in quotes"
        return
    for index, value in enumerate(each.values):
        if (reason := _unfit(value)) is not None:
            yield ("values", index), reason
    yield from _distinct("values", each.values)


def _kind(value: object) -> str:
    if isinstance(value, bool):
        return "true or false"
    return "text" if isinstance(value, str) else "numbers"


def _distinct(key: str, values: Sequence[object]) -> Iterator[Problem]:
    for index, value in enumerate(values):
        if value in values[:index]:
            yield (key, index), f"{value!r} is there twice"


def _reference(each: References) -> Iterator[Problem]:
    yield from _distinct("columns", each.columns)
    if each.to and len(each.to) != len(each.columns):
        yield ("to",), f"it has {len(each.to)} columns where `columns` has {len(each.columns)}"
    if each.among == "log" and each.log is None:
        yield ("among",), "name the log with `log`"
    if each.among != "log":
        for key, given in (("log", each.log), ("value", each.value)):
            if given is not None:
                yield (key,), f"`{key}` goes with `among: log`, and it says `{each.among}`"
