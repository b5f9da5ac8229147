"""Names of exported files: the range of positions, and nothing that a repeated run would change."""

import re

from anabranch.errors import BadRequest
from anabranch_spark.export.ranges import Range

MANIFEST = "_anabranch-export.json"
"""Readers of Parquet folders skip names that begin with an underscore."""
STAGING = "_anabranch-staging"

_NAME = re.compile(r"positions-(?P<start>[0-9]{19})-(?P<end>[0-9]{19})\.parquet")
_PART = re.compile(r"(?:.*/)?part-[^/]*\.parquet")


def file_name(positions: Range) -> str:
    """The end is the first position that isn't in the file. Names sort as positions do."""
    return f"positions-{positions.start:019d}-{positions.end:019d}.parquet"


def range_of(name: str) -> Range | None:
    """What `file_name` was given; None for files of others."""
    found = _NAME.fullmatch(name)
    if found is None:
        return None
    start, end = int(found["start"]), int(found["end"])
    if start >= end:
        raise BadRequest("continue an export", f"no export names a file {name}")
    return Range(start, end)


def is_data(path: str) -> bool:
    """Spark wrote this file, and it has records; checksums and markers have none."""
    return _PART.fullmatch(path) is not None
