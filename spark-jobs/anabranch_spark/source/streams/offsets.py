"""Offsets of a stream: how far into which log a query has read, as its checkpoint keeps them."""

from collections.abc import Mapping

import msgspec

from anabranch.errors import BadRequest

VERSION = 1


class Offset(msgspec.Struct, frozen=True):
    """A position below which all is read. It never lies past what was settled, so it never
    moves.
    """

    log: int
    """The log's id: another log of the same name isn't the one that the checkpoint is of."""
    generation: int
    """Of the log's lineage when the offset was made, for people who look into a checkpoint."""
    position: int


def as_json(offset: Offset) -> dict[str, int]:
    """What Spark writes into the checkpoint. Equal offsets are the same text."""
    return {
        "v": VERSION,
        "log": offset.log,
        "generation": offset.generation,
        "position": offset.position,
    }


class _Written(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    v: int
    log: int
    generation: int
    position: int


def from_json(given: Mapping[str, object]) -> Offset:
    """The offset that a checkpoint has. BadRequest if it is no offset of this source."""
    what = "the offset in the checkpoint"
    if given.get("v") != VERSION:
        reason = f"{str(dict(given))[:100]} is none that this version of anabranch_spark writes"
        raise BadRequest(what, reason)
    try:
        written = msgspec.convert(dict(given), _Written)
    except msgspec.ValidationError as fault:
        raise BadRequest(what, str(fault)) from None
    if min(written.log, written.position) < 0:
        raise BadRequest(what, f"{written} has a number below zero")
    return Offset(written.log, written.generation, written.position)
