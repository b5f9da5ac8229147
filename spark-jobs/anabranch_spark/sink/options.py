"""The options of a write: what they may be, and which belong together."""

import re
from collections.abc import Mapping
from enum import StrEnum

import msgspec

from anabranch.errors import BadRequest
from anabranch_spark.option_table import Kind, recognised, shortened

FORK_TTL_S = 3_600
"""A fork that isn't promoted by then is squashed, so that it doesn't block reads for ever."""

_NUMBER = re.compile(r"[0-9]{1,16}", re.ASCII)
_VERSION_END = 1 << 53
_TTL_S_END = 366 * 86_400
UNNAMED = "once-"
"""Begins the names of writers that the sink draws, and releases later."""
_CHARS_MAX = 150
"""Of a writer or a run: the service's `writer_chars_max` has room for what is put before it."""


class Mode(StrEnum):
    """How a batch comes into the log."""

    DIRECT = "direct"
    """Readers see records as tasks append them."""
    FORK = "fork"
    """Readers see a batch whole, when it is promoted."""


class WriteOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What a user asked for; options that weren't given are None."""

    service: str | None
    """A URL; without one the environment says it."""
    log: str
    mode: Mode
    writer: str | None
    fork_ttl_s: int
    run: str | None = None
    """Identifies a batch write that may be tried again."""
    version: int | None = None
    """Of `writer`, for batch writes that number themselves."""


def stream_options(given: Mapping[str, str]) -> WriteOptions:
    """Those of `writeStream`."""
    return _options(given, "stream")


def batch_options(given: Mapping[str, str]) -> WriteOptions:
    """Those of `write`: `runId`, or `writer` with `version`, or neither."""
    options = _options(given, "batch")
    if (options.writer is None) != (options.version is None):
        missing = "version" if options.version is None else "writer"
        reason = f"{missing} is missing: writer and version identify a batch write together"
        raise BadRequest("options writer and version", reason)
    if options.run is not None and options.writer is not None:
        reason = "both identify the write: give runId, or writer with version"
        raise BadRequest("options runId and writer", reason)
    return options


def _options(given: Mapping[str, str], kind: Kind) -> WriteOptions:
    found = recognised(given, "writing", kind)
    log = found.get("log", "")
    if not log:
        raise BadRequest("option log", "it says which log to append to, and is missing")
    return WriteOptions(
        service=found.get("service") or None,
        log=log,
        mode=_mode(found.get("mode", Mode.DIRECT)),
        writer=_name("writer", found.get("writer")),
        fork_ttl_s=_fork_ttl(found),
        run=_name("runId", found.get("runId")),
        version=_number("version", found.get("version"), _VERSION_END),
    )


def _mode(given: str) -> Mode:
    try:
        return Mode(given)
    except ValueError:
        raise _wrong("mode", given, "it must be direct or fork") from None


def _fork_ttl(found: Mapping[str, str]) -> int:
    given = _number("forkTtl", found.get("forkTtl"), _TTL_S_END)
    if given is None:
        return FORK_TTL_S
    if found.get("mode") != Mode.FORK:
        raise _wrong("forkTtl", str(given), "it is for mode=fork only")
    if not given:
        raise _wrong("forkTtl", "0", "it must be 1 second at least")
    return given


def _name(option: str, given: str | None) -> str | None:
    if given is not None and (not 0 < len(given) <= _CHARS_MAX or not given.isprintable()):
        raise _wrong(option, given, f"it must have 1 to {_CHARS_MAX} printable characters")
    if option == "writer" and given is not None and given.startswith(UNNAMED):
        reason = f"names that begin with {UNNAMED!r} are those of writes without a name"
        raise _wrong(option, given, reason)
    return given


def _number(option: str, given: str | None, end: int) -> int | None:
    if given is None:
        return None
    if not _NUMBER.fullmatch(given) or int(given) >= end:
        raise _wrong(option, given, f"it must be a whole number from 0 to {end - 1}")
    return int(given)


def _wrong(option: str, value: str, reason: str) -> BadRequest:
    return BadRequest(f"option {option}={shortened(value)}", reason)
