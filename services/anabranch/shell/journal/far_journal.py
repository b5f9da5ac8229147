"""A note in a data directory whose journal is in another system: where that is."""

from anabranch.shell.journal.disk import RealDisk
from anabranch.shell.journal.replay import PART

_FILE = "black-box"


def noted_place(directory: str) -> str:
    """Empty if the journal is in the directory itself, or nowhere yet."""
    disk = RealDisk(directory)
    if _FILE not in disk.names():
        return ""
    return disk.read(_FILE).decode("utf-8", "replace").strip()


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
