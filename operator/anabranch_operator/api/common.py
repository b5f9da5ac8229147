"""What the specs and statuses of several kinds have in common."""

from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Annotated, Any

from msgspec import Meta, Struct

from anabranch_operator.api.anabranch_names import Milliseconds

RATE_MAX = 10**12

Rate = Annotated[int, Meta(ge=1, le=RATE_MAX)]
Span = Annotated[str, Meta(pattern=r"^([0-9]{1,12}(ms|s|m|h|d))+$", max_length=32)]
"""A duration, as `90s`, `1h30m` or `7d`."""
Moment = Annotated[str, Meta(max_length=40, extra_json_schema={"format": "date-time"})]
"""A time, as RFC 3339 writes it: `2026-03-01T12:00:00Z`."""
LogName = Annotated[
    str, Meta(min_length=1, max_length=200, pattern=r"^[a-zA-Z0-9]([a-zA-Z0-9._-]*[a-zA-Z0-9])?$")
]
"""As the log service takes it; how long it may be there is a limit of its own."""

KEPT: dict[str, Any] = {"x-kubernetes-preserve-unknown-fields": True}
"""What others define stays as it was written."""


class Shape(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=False):
    """Base of whatever is written in a resource; its keys are in camel case there."""


def keyed_by(name: str) -> Meta:
    """Of a list: its items are told apart by this key of theirs, also by who applies some."""
    return Meta(
        extra_json_schema={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": [name]}
    )


class GroupEngineName(StrEnum):
    """Which engine's log a SequencerSet and its ShardGroups are; or, of a SequencerSet alone, the
    lazy front of a Bolt log.
    """

    BELFAST = "belfast"
    """Records are delivered before their order is final."""
    ERWIN = "erwin"
    """Appends are acknowledged in one round trip, and get their positions afterwards."""
    LAZY = "lazy"
    """In the place of an engine: the sequencers take the appends of a Bolt log, and have them
    committed to it in the background. There are no ShardGroups.
    """


class Durability(StrEnum):
    FSYNC = "fsync"
    """Acknowledge a record once it is on the disks of all replicas that must hold it."""
    MEMORY = "memory"
    """Acknowledge a record once all replicas that must hold it have it in memory. A loss of power
    loses it.
    """


class Quota(Shape, frozen=True, kw_only=True):
    """How much may be appended and read in a second, by all clients together. What is left out
    isn't limited.
    """

    append_bytes_per_second: Rate | None = None
    """Bytes of batches that may be appended in a second, counted as they are sent, compressed or
    not.
    """
    append_records_per_second: Rate | None = None
    """Records that may be appended in a second, however small."""
    read_bytes_per_second: Rate | None = None
    """Bytes that may be sent to readers and subscribers in a second."""
    burst_milliseconds: Annotated[int, Meta(ge=1, le=60_000)] = 1_000
    """Milliseconds for which an unused quota is saved up: so much may be used at once after a
    pause.
    """


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
_UNITS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}

SPAN_MS_MAX: Milliseconds = 36_500 * _UNITS["d"]
"""The schema lets in what no clock holds: whatever is longer than a century is a century."""


def milliseconds(span: str) -> Milliseconds:
    """The length of a duration that the schema has let in."""
    total, number, unit = 0, "", ""
    for char in [*span, "0"]:
        if char.isdigit() and unit:
            total += int(number) * _UNITS[unit]
            number, unit = "", ""
        if char.isdigit():
            number += char
        else:
            unit += char
    return min(total, SPAN_MS_MAX)


def instant(moment: str) -> Milliseconds:
    """RFC 3339, in all the ways that the API server lets it be written; `ValueError` if it is none
    all the same, as a day of the year 0 is.
    """
    read = datetime.fromisoformat(moment.upper())
    # Not by its timestamp: that is a float, which has no exact thousandths of a second.
    return (read.astimezone(UTC) - _EPOCH) // _MILLISECOND
