"""Which columns a frame may have that is written to a log."""

from collections.abc import Sequence

import msgspec

from anabranch.errors import BadRequest

_BYTES = ("binary", "string")
_TYPES = {
    "value": _BYTES,
    "key": _BYTES,
    "headers": tuple(f"array<struct<name:string,value:{kind}>>" for kind in _BYTES),
    "timestamp": ("timestamp",),
}
"""By name, the types as Spark writes them."""
_OF_READING = frozenset({"position", "origin", "origin_position", "log"})
"""Columns of a frame that was read from a log: a record that is written gets its own."""


class Columns(msgspec.Struct, frozen=True):
    """Where each column of the frame is; None for one that it doesn't have."""

    value: int
    key: int | None = None
    headers: int | None = None
    timestamp: int | None = None


def input_columns(fields: Sequence[tuple[str, str]]) -> Columns:
    """Of a frame with these columns, each with its type. Refuses what no record can hold."""
    places: dict[str, int] = {}
    for place, (name, kind) in enumerate(fields):
        types = _TYPES.get(name)
        if types is None:
            raise BadRequest(f"column {name!r} in a write to a log", _why_unknown(name))
        if name in places:
            raise BadRequest(f"column {name!r} in a write to a log", "the frame has it twice")
        if kind not in types:
            raise BadRequest(
                f"column {name!r} of type {kind} in a write to a log",
                f"it must be {' or '.join(types)}: cast it",
            )
        places[name] = place
    if "value" not in places:
        raise BadRequest(
            "a write to a log without a column 'value'",
            "name the column that holds the records' values so, for instance to_json(struct(*))",
        )
    return Columns(**places)


def _why_unknown(name: str) -> str:
    if name in _OF_READING:
        return "the log gives each record its own: drop the column"
    if name.lower() in _TYPES:
        return f"the name is case-sensitive: call it {name.lower()!r}"
    return f"a record has {', '.join(_TYPES)}: drop it, or put it into one of these"
