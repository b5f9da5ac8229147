"""The options of a write: what they may be, and which belong together."""

import re
from collections.abc import Mapping
from difflib import get_close_matches
from enum import StrEnum

import msgspec

from anabranch.errors import BadRequest

FORK_TTL_S = 3_600
"""A fork that isn't promoted by then is squashed, so that it doesn't block reads for ever."""

_BOTH = ("service", "log", "mode", "writer", "forkTtl")
_BATCH = (*_BOTH, "runId", "version")
_SPARKS = frozenset({"checkpointlocation"})
"""Spark hands its own options on."""
_NUMBER = re.compile(r"[0-9]{1,16}", re.ASCII)
_VERSION_END = 1 << 53
_TTL_S_END = 366 * 86_400
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
    return _options(given, _BOTH, "writeStream")


def batch_options(given: Mapping[str, str]) -> WriteOptions:
    """Those of `write`: `runId`, or `writer` with `version`, or neither."""
    options = _options(given, _BATCH, "write")
    if (options.writer is None) != (options.version is None):
        missing = "version" if options.version is None else "writer"
        raise BadRequest(
            "the options of a write",
            f"{missing!r} is missing: 'writer' and 'version' identify a batch write together",
        )
    if options.run is not None and options.writer is not None:
        raise BadRequest(
            "the options of a write",
            "'runId' and 'writer' both identify it: give 'runId', or 'writer' with 'version'",
        )
    return options


def _options(given: Mapping[str, str], known: tuple[str, ...], what: str) -> WriteOptions:
    found = _recognised(given, known, what)
    log = found.get("log", "")
    if not log:
        raise BadRequest(f"the options of {what}", "'log' is missing: name the log or fork")
    return WriteOptions(
        service=found.get("service") or None,
        log=log,
        mode=_mode(found.get("mode", Mode.DIRECT)),
        writer=_name("writer", found.get("writer")),
        fork_ttl_s=_fork_ttl(found),
        run=_name("runId", found.get("runId")),
        version=_number("version", found.get("version"), _VERSION_END),
    )


def _recognised(given: Mapping[str, str], known: tuple[str, ...], what: str) -> dict[str, str]:
    """By the names of the documentation: Spark's are case-insensitive. Refuses all others."""
    spelling = {name.lower(): name for name in known}
    found: dict[str, str] = {}
    for key, value in given.items():
        name = spelling.get(key.lower())
        if name is not None:
            found[name] = value
        elif key.lower() == "path":
            raise BadRequest(
                f"{value!r} as a path of {what}", "a log isn't a file: name it with option 'log'"
            )
        elif key.lower() not in _SPARKS:
            near = get_close_matches(key.lower(), spelling, n=1)
            hint = f"did you mean {spelling[near[0]]!r}?" if near else "there is no such option;"
            raise BadRequest(f"option {key!r} of {what}", f"{hint} known are {', '.join(known)}")
    return found


def _mode(given: str) -> Mode:
    try:
        return Mode(given)
    except ValueError:
        raise BadRequest(f"mode {given!r}", "it is 'direct' or 'fork'") from None


def _fork_ttl(found: Mapping[str, str]) -> int:
    given = _number("forkTtl", found.get("forkTtl"), _TTL_S_END)
    if given is None:
        return FORK_TTL_S
    if found.get("mode") != Mode.FORK or not given:
        raise BadRequest(
            f"option 'forkTtl' {given}", "it is a number of seconds from 1 on, for mode 'fork'"
        )
    return given


def _name(option: str, given: str | None) -> str | None:
    if given is not None and (not 0 < len(given) <= _CHARS_MAX or not given.isprintable()):
        raise BadRequest(f"option {option!r}", f"it has 1 to {_CHARS_MAX} printable characters")
    return given


def _number(option: str, given: str | None, end: int) -> int | None:
    if given is None:
        return None
    if not _NUMBER.fullmatch(given) or int(given) >= end:
        raise BadRequest(
            f"option {option!r} {given[:40]!r}", f"it is a whole number from 0 to {end - 1}"
        )
    return int(given)
