"""Which filters of a query cut a plan: comparisons of `position` with a number, exactly.

A time isn't claimed: `timestamp` is what a producer gave, and a plan knows no bounds of it.
"""

from typing import Literal, NamedTuple

POSITION_MAX = (1 << 62) - 1
COLUMN = "position"

Comparison = Literal["=", "<", "<=", ">", ">=", "not null"]


class Within(NamedTuple):
    """Positions that filters leave: from `low`, up to below `high`."""

    low: int = 0
    high: int = POSITION_MAX


ALL = Within()


class Filter(NamedTuple):
    """One filter in words of our own. Filters of a query must all hold."""

    column: tuple[str, ...]
    comparison: Comparison
    value: object = None


def narrowed(within: Within, found: Filter) -> Within | None:
    """The positions for which the filter holds as well. None if a range of positions doesn't say
    exactly that: then Spark has to apply it.
    """
    if found.column != (COLUMN,):
        return None
    if found.comparison == "not null":
        return within  # every record has a position
    value = found.value
    # `True` is a number to Python, and nothing that Spark compares a bigint with.
    if not isinstance(value, int) or isinstance(value, bool):
        return None
    low, high = within
    match found.comparison:
        case "=":
            low, high = max(low, value), min(high, value + 1)
        case "<":
            high = min(high, value)
        case "<=":
            high = min(high, value + 1)
        case ">":
            low = max(low, value + 1)
        case ">=":
            low = max(low, value)
    return Within(low, max(low, high))
