"""How far an export to a folder has come, and how it goes on: the folder itself says so.

A run renames each finished file to its range, in order, and then replaces the manifest. After a
kill at any point the files say what the manifest doesn't yet. Files that were taken elsewhere since
are known by the manifest.
"""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Protocol

import msgspec

from anabranch.errors import BadRequest
from anabranch_spark.export.names import MANIFEST, file_name, range_of
from anabranch_spark.export.ranges import Range

_CONTINUE = "continue an export"


class Manifest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the folder is of, and the first position that it doesn't have."""

    log: str
    log_id: int
    generation: int
    schema: str | None
    """The DDL that values were decoded with; None: they are binary."""
    first: int
    next: int
    version: int = 1


class Folder(Protocol):
    """The folder of an export, on a disk or in a bucket."""

    def names(self) -> list[str]:
        """Of the files in it; empty if there is no folder."""
        ...

    def read(self, name: str) -> bytes: ...

    def replace(self, name: str, content: bytes) -> None:
        """Readers see the old or the new content, never less."""
        ...

    def publish(self, staged: str, name: str) -> None:
        """Give a staged file its name. Refused if there is one of that name."""
        ...


def read_manifest(folder: Folder, names: Sequence[str]) -> Manifest | None:
    """BadRequest if the file is there and isn't an export's."""
    if MANIFEST not in names:
        return None
    try:
        manifest = msgspec.json.decode(folder.read(MANIFEST), type=Manifest)
    except msgspec.DecodeError as error:
        raise BadRequest(_CONTINUE, f"{MANIFEST} can't be read: {error}") from None
    if manifest.version != 1:
        reason = f"{MANIFEST} is of version {manifest.version}, this program knows 1"
        raise BadRequest(_CONTINUE, reason)
    return manifest


def next_position(manifest: Manifest | None, names: Iterable[str]) -> int | None:
    """The first position that isn't exported yet; None before the first export.

    BadRequest if files overlap or leave a gap after what the manifest says: then nobody can tell
    which records there are.
    """
    found = sorted(each for each in map(range_of, names) if each is not None)
    for before, after in pairwise(found):
        if after.start < before.end:
            both = f"{file_name(before)} and {file_name(after)}"
            raise BadRequest(_CONTINUE, f"{both} have positions in common")
    done = manifest.next if manifest is not None else None
    for each in found:
        if done is None or each.start == done:
            done = each.end
        elif each.end > done:
            reason = (
                f"{file_name(each)} is there, and positions [{done}..{each.start}) before it aren't"
            )
            raise BadRequest(_CONTINUE, reason)
    return done


def check_same(manifest: Manifest | None, wanted: Manifest) -> None:
    """BadRequest unless the folder is of this log, of no later state of it, and of this schema."""
    if manifest is None:
        return
    if manifest.log_id != wanted.log_id:
        there = f"the folder has the records of {manifest.log} (id {manifest.log_id})"
        reason = f"{there}, not of {wanted.log} (id {wanted.log_id}): export to another folder"
        raise BadRequest(_CONTINUE, reason)
    if manifest.generation > wanted.generation:
        reason = (
            f"the folder was exported from generation {manifest.generation} of {wanted.log}, and "
            f"the service is at {wanted.generation}: was it restored from an older copy?"
        )
        raise BadRequest(_CONTINUE, reason)
    if manifest.schema != wanted.schema:
        reason = f"its values were decoded with {manifest.schema!r}, now with {wanted.schema!r}"
        raise BadRequest(_CONTINUE, f"{reason}: export to another folder")


def publish(folder: Folder, staged: Sequence[tuple[str, Range]], manifest: Manifest) -> Manifest:
    """Give finished files their names, in order of position; the manifest as it is then.

    BadRequest if somebody else has exported meanwhile. Nothing is renamed then, unless it was at
    the same moment: from then on the folder is refused if files have positions in common.
    """
    names = folder.names()
    done = next_position(read_manifest(folder, names), names)
    for path, positions in staged:
        if done is not None and positions.start != done:
            reason = f"the folder goes on at {done}, and {positions} was to be added to it"
            raise BadRequest("export to a folder", f"{reason}: does another export write there?")
        folder.publish(path, file_name(positions))
        done = positions.end
        manifest = msgspec.structs.replace(manifest, next=done)
    # Two that came here at the same moment had both looked before either renamed anything.
    if next_position(manifest, folder.names()) != done:
        raise BadRequest("export to a folder", "another export writes there")
    folder.replace(MANIFEST, msgspec.json.format(msgspec.json.encode(manifest), indent=2))
    return manifest
