"""What data must look like: declared as YAML or Python, judged in one pass, reported with pictures.

An expectation that can't be judged fails. No module here opens a connection; only `decode`,
`row_checks`, `passes`, `samples`, `relations` and `judge` import pyspark, and this package imports
none of these by itself.
"""

from anabranch_spark.expectations.load import checked, load, parsed
from anabranch_spark.expectations.outcome import Report, Result, Sample, Status
from anabranch_spark.expectations.suite import (
    Bytes,
    Fields,
    Freshness,
    Holds,
    InRange,
    Json,
    Length,
    Matches,
    NotNull,
    OneOf,
    References,
    RowCount,
    Suite,
    Text,
    Unique,
)

__all__ = [
    "Bytes",
    "Fields",
    "Freshness",
    "Holds",
    "InRange",
    "Json",
    "Length",
    "Matches",
    "NotNull",
    "OneOf",
    "References",
    "Report",
    "Result",
    "RowCount",
    "Sample",
    "Status",
    "Suite",
    "Text",
    "Unique",
    "checked",
    "load",
    "parsed",
]
