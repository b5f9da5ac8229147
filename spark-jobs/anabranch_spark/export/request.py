"""What an export was asked for, checked."""

from collections.abc import Iterable
from enum import StrEnum

import msgspec

from anabranch.errors import BadRequest
from anabranch_spark.export.ranges import RECORDS, checked_bytes, checked_records

SCHEMA_CHARS_MAX = 100_000
_WHAT = "export a log"


class Form(StrEnum):
    """What an export writes."""

    PARQUET = "parquet"
    ICEBERG = "iceberg"
    DELTA = "delta"


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """One run of the job."""

    service: str
    log: str
    form: Form
    target: str
    start: int | None = None
    """Where the first run begins. None: at the log's first position."""
    end: int | None = None
    """None: at the settled position."""
    records: int | None = RECORDS
    bytes: int | None = None
    full_only: bool = False
    schema: str | None = None
    branch: str | None = None

    def __post_init__(self) -> None:
        if self.bytes is not None:
            checked_bytes(self.bytes)
        elif self.records is not None:
            checked_records(self.records)
        if self.branch is not None and self.form is not Form.ICEBERG:
            raise BadRequest(_WHAT, f"--branch is for Iceberg: {self.form} tables have no branches")
        if self.form is Form.ICEBERG and not 2 <= self.target.count(".") <= 9:
            reason = f"an Iceberg table is named CATALOG.NAMESPACE.TABLE, not {self.target!r}"
            raise BadRequest(_WHAT, reason)
        if self.schema is not None and not 0 < len(self.schema) <= SCHEMA_CHARS_MAX:
            reason = f"--schema has {len(self.schema)} characters; at most {SCHEMA_CHARS_MAX}"
            raise BadRequest(_WHAT, reason)


def limits(*, records: int | None, size: int | None) -> tuple[int | None, int | None]:
    """Records and bytes of a range: one of them, the default of records if none is given."""
    if records is not None and size is not None:
        raise BadRequest(_WHAT, "ranges are cut by --records or by --bytes, not by both")
    if size is not None:
        return None, size
    return (RECORDS if records is None else records), None


def settings(words: Iterable[str]) -> dict[str, str]:
    """Spark's settings from words `KEY=VALUE`."""
    found = dict[str, str]()
    for word in words:
        key, separator, value = word.partition("=")
        if not separator or not key.startswith("spark."):
            raise BadRequest(_WHAT, f"--conf takes spark.KEY=VALUE, not {word!r}")
        found[key] = value
    return found
