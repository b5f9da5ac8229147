"""How every job ends: an exit code, and a report as JSON."""

import secrets
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
    write_whole(path, text)


def write_whole(path: str, content: bytes) -> None:
    """Replace a file by another. What is no file, such as /dev/stdout, is written to as it is."""
    whole = Path(path)
    if whole.exists() and not whole.is_file():
        whole.write_bytes(content)
        return
    # Of a name that nobody knows before: two jobs may write at once, and where others may make
    # files, one of them could be a link to anything.
    part = whole.with_name(f"{whole.name}.{secrets.token_hex(4)}.part")
    try:
        with part.open("xb") as file:
            file.write(content)
        part.replace(whole)
    except OSError:
        part.unlink(missing_ok=True)
        raise
