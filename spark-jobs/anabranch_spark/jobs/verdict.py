"""How every job ends: an exit code, and a report as JSON."""

import sys
from enum import IntEnum
from pathlib import Path

import msgspec


class Verdict(IntEnum):
    """The exit code of a job."""

    DONE = 0
    """It is done, or the data pass."""
    REFUSED = 2
    """The data say no."""
    UNKNOWN = 3
    """The job couldn't tell: nothing may be concluded about the data."""


def write_report(report: msgspec.Struct, path: str | None) -> None:
    """As JSON into this file, or to standard output without one.

    A file is replaced whole: no reader ever sees half a report.
    """
    text = msgspec.json.format(msgspec.json.encode(report), indent=2) + b"\n"
    if path is None:
        sys.stdout.buffer.write(text)
        sys.stdout.flush()
        return
    whole = Path(path)
    part = whole.with_name(whole.name + ".part")
    part.write_bytes(text)
    part.replace(whole)
