"""The columns of a log's records."""

from collections.abc import Sequence

COLUMNS = {
    "position": "bigint",
    "timestamp": "timestamp",
    "key": "binary",
    "value": "binary",
    "headers": "array<struct<name: string, value: binary>>",
    "origin": "bigint",
    "origin_position": "bigint",
}
"""By name, in order, with Spark's types. `origin` is the id of the log that a record was appended
to, and `origin_position` the record's position there; `timestamp` is what its producer gave.
"""

LOG_COLUMN = "log"
"""The log's name: there is this column, the first, if several logs are read."""

_TYPES = {LOG_COLUMN: "string", **COLUMNS}


def available(*, several: bool) -> tuple[str, ...]:
    """The names of all columns of a scan of one log, or of several."""
    return (LOG_COLUMN, *COLUMNS) if several else tuple(COLUMNS)


def simple_type(column: str) -> str:
    """The column's type as Spark names types in messages."""
    return _TYPES[column].replace(": ", ":").replace(", ", ",")


def ddl(columns: Sequence[str]) -> str:
    """These columns as Spark's own language for schemas has them."""
    return ", ".join(f"{name} {_TYPES[name]}" for name in columns)
