"""The columns of a log's records."""

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
