"""A question to a log: the columns it needs, and how its answer is computed."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

ROWS_MAX = 1_000
"""A report lists so many rows, and says how many there are."""


class Findings(msgspec.Struct):
    """An answer."""

    found: int
    """How many rows it has in all."""
    rows: list[dict[str, Any]]

    @classmethod
    def of(cls, frame: "DataFrame") -> "Findings":
        """The first rows of a frame, in its order."""
        kept = frame.persist()
        rows = [row.asDict(recursive=True) for row in kept.limit(ROWS_MAX).collect()]
        found = len(rows) if len(rows) < ROWS_MAX else kept.count()
        kept.unpersist()
        return cls(found, rows)


class Question(msgspec.Struct, frozen=True):
    """One of the analytics."""

    name: str
    schema: str
    """Of the values, as DDL; they are JSON."""
    asks: str
    level: str
    """What the level of the question says."""
    answer: "Callable[[DataFrame, float | None], Findings]"
    """Of events: columns of the schema, and `position`."""
