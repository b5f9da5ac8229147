"""Which broker lives `--accept-loss` gave up, noted beside the objects.

It isn't in the journal: a snapshot would forget it, and a journal that is put back never had it.
"""

import msgspec

from anabranch.core.errors import StorageFailed
from anabranch.shell.journal.disk import RealDisk
from anabranch.shell.journal.replay import PART

FILE = ".accepted"
"""In the folder of objects, where no object's name begins with a dot."""


class Acceptance(msgspec.Struct, frozen=True):
    """A journal that was behind, and was gone on with."""

    entry: int
    """Its last one."""
    knew: int
    """The last broker life that it knew."""
    lives: int
    """Broker lives up to this one may have been given out; it goes on with a later one."""

    def is_known(self, lives: int) -> bool:
        """Is this a journal that went on from here, and not one that was given up?"""
        return lives > self.lives

    def gave_up(self, life: int) -> bool:
        """Commits of this life may be missing."""
        return self.knew <= life <= self.lives


class AcceptancesFile:
    def __init__(self, objects: str) -> None:
        self._disk = RealDisk(objects)

    def read(self) -> list[Acceptance]:
        """In their order. Raises StorageFailed if they can't be read."""
        if FILE not in self._disk.names():
            return []
        try:
            return msgspec.json.decode(self._disk.read(FILE), type=list[Acceptance])
        except msgspec.DecodeError as error:
            raise StorageFailed(f"{self._disk.where}/{FILE}", str(error)) from None

    def add(self, acceptance: Acceptance) -> None:
        """Durable when this returns; once, if it was cut short and is repeated."""
        known = self.read()
        if acceptance in known:
            return
        if FILE + PART in self._disk.names():
            self._disk.remove(FILE + PART)
        file = self._disk.create(FILE + PART)
        try:
            file.write(msgspec.json.encode([*known, acceptance]) + b"\n", 0)
            file.sync()
        finally:
            file.close()
        self._disk.rename(FILE + PART, FILE)
        self._disk.sync()
