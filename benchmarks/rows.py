"""What a benchmark says: one row for each thing measured, beside what it is held against."""

from collections.abc import Sequence
from typing import NamedTuple


class Row(NamedTuple):
    """`ratio` is the value over that of the row named `against`; `holds`, if the bar is met."""

    what: str
    value: float
    unit: str
    against: str | None = None
    ratio: float | None = None
    bar: str | None = None
    holds: bool | None = None


def at_most(what: str, value: float, unit: str, limit: float, *, bar: str | None = None) -> Row:
    return Row(what, value, unit, bar=bar or f"<= {limit:g} {unit}", holds=value <= limit)


def at_least(what: str, value: float, unit: str, limit: float) -> Row:
    return Row(what, value, unit, bar=f">= {limit:g} {unit}", holds=value >= limit)


def ratio_at_most(what: str, value: float, unit: str, other: Row, limit: float) -> Row:
    ratio = value / other.value
    return Row(what, value, unit, other.what, ratio, f"<= {limit:g}x", ratio <= limit)


def ratio_at_least(what: str, value: float, unit: str, other: Row, limit: float) -> Row:
    ratio = value / other.value
    return Row(what, value, unit, other.what, ratio, f">= {limit:g}x", ratio >= limit)


def beside(what: str, value: float, unit: str, other: Row | None = None) -> Row:
    """Shown, and held to nothing."""
    if other is None:
        return Row(what, value, unit)
    return Row(what, value, unit, other.what, value / other.value)


def percentile(sorted_values: Sequence[float], percent: float) -> float:
    return sorted_values[min(len(sorted_values) - 1, int(len(sorted_values) * percent / 100))]


def median(values: Sequence[float]) -> float:
    return percentile(sorted(values), 50)
