"""A note in a data directory whose journal is in another system: where that is."""

from anabranch.core.limits import KIB
from anabranch.shell.journal.disk import RealDisk, storage
from anabranch.shell.journal.replay import PART
from anabranch.shell.runtime.regular_file import read_regular

_FILE = "black-box"
PLACE_BYTES_MAX = 16 * KIB
"""Of a note: a black box's address is shorter."""


def noted_place(directory: str) -> str:
    """Empty if the journal is in the directory itself, or nowhere yet. Raises StorageFailed for a
    file that no note can be.
    """
    disk = RealDisk(directory)
    if _FILE not in disk.names():
        return ""
    path = f"{disk.where}/{_FILE}"
    with storage(path):
        return read_regular(path, PLACE_BYTES_MAX).decode("utf-8", "replace").strip()


def note_place(directory: str, place: str) -> None:
    """Durably, and whole or not at all."""
    disk, part = RealDisk(directory), _FILE + PART
    if part in disk.names():
        disk.remove(part)
    file = disk.create(part)
    try:
        file.write(f"{place}\n".encode(), 0)
        file.sync()
    finally:
        file.close()
    disk.rename(part, _FILE)
    disk.sync()
