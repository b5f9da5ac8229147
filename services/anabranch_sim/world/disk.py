"""A disk that forgets: what wasn't synced may be lost, torn or scrambled when the power goes.

A failed sync is as bad as on Linux: the pages count as clean from then on, so that a later sync
succeeds without having written them.
"""

from dataclasses import dataclass, field

from anabranch.core.errors import StorageFailed, StorageFull
from anabranch.core.machine import Buffer
from anabranch_sim.world.events import World

SECTOR = 512


class PowerCut(Exception):
    """The node dies in the midst of this operation."""


@dataclass(slots=True)
class DiskFaults:
    """What may go wrong with an operation, as probabilities; all zero is a good disk."""

    write_fails: float = 0.0
    sync_fails: float = 0.0
    flips: float = 0.0
    """Of an unsynced write that survives a power cut: whether a bit of it is wrong."""
    bytes_max: int = 1 << 40
    """Room on the disk."""


@dataclass(slots=True)
class _Write:
    """An unsynced change: bytes at an offset, or a new size."""

    offset: int
    content: bytes | None
    """None: the file was cut or extended to this offset."""


@dataclass(slots=True)
class _Inode:
    durable: bytearray = field(default_factory=bytearray)
    seen: bytearray = field(default_factory=bytearray)
    """What a reader gets: the page cache."""
    unsynced: list[_Write] = field(default_factory=list[_Write])


_Names = dict[str, _Inode]
_Change = tuple[tuple[str, _Inode | None], ...]


class SimDisk:
    """`ports.Disk` in memory. Survives its node; `cut_power` decides what of it."""

    def __init__(self, world: World, where: str) -> None:
        self.world = world
        self.faults = DiskFaults()
        self.dies_in: int | None = None
        """So many operations from now the power goes."""
        self.life = 0
        self._where = where
        self._names: _Names = {}
        self._durable: _Names = {}
        self._undone: list[_Change] = []
        """Unsynced changes of the directory, in order: names, and what they then stand for."""

    @property
    def where(self) -> str:
        return self._where

    def names(self) -> list[str]:
        return sorted(self._names)

    def read(self, name: str, bytes_max: int = -1, offset: int = 0) -> bytes:
        self.operate()
        seen = self._names[name].seen
        return bytes(seen[offset:] if bytes_max < 0 else seen[offset : offset + bytes_max])

    def create(self, name: str) -> "SimFile":
        self.operate()
        assert name not in self._names, f"{name} exists"
        inode = _Inode()
        self._change((name, inode))
        return SimFile(self, inode)

    def open(self, name: str) -> "SimFile":
        self.operate()
        return SimFile(self, self._names[name])

    def rename(self, old: str, new: str) -> None:
        self.operate()
        self._change((new, self._names[old]), (old, None))

    def remove(self, name: str) -> None:
        self.operate()
        assert name in self._names, f"{name} is not there"
        self._change((name, None))

    def sync(self) -> None:
        self.operate()
        self._durable = dict(self._names)
        self._undone.clear()

    def cut_power(self) -> None:
        """Keep what was synced, and of the rest what chance has written already."""
        kept = self.world.between(0, len(self._undone))
        for change in self._undone[:kept]:
            _apply(self._durable, change)
        self._undone.clear()
        for inode in self._durable.values():
            self._lose(inode)
        self._names = dict(self._durable)
        self._end_life()

    def kill(self) -> None:
        """The process dies and the machine lives: the page cache is all there."""
        self._end_life()

    def spoil(self, name: str, offset: int) -> None:
        """Flip a bit of what was durable: damage that no journal can undo."""
        inode, bit = self._names[name], 1 << self.world.between(0, 7)
        for content in (inode.durable, inode.seen):
            content[offset] ^= bit

    def operate(self) -> None:
        """Every operation is a point at which the power may go."""
        if self.dies_in is not None:
            self.dies_in -= 1
            if self.dies_in < 0:
                raise PowerCut

    def used(self) -> int:
        return sum(len(inode.seen) for inode in self._names.values())

    def room(self) -> int:
        return max(0, self.faults.bytes_max - self.used())

    def torn(self, content: bytes) -> bytes:
        """What of a write reached the platter: some sectors, or all, perhaps with a wrong bit."""
        world = self.world
        if world.chance(0.5):
            content = content[: world.between(0, len(content) // SECTOR) * SECTOR]
        if content and world.chance(self.faults.flips):
            scrambled = bytearray(content)
            scrambled[world.between(0, len(content) - 1)] ^= 1 << world.between(0, 7)
            content = bytes(scrambled)
        return content

    def _end_life(self) -> None:
        self.life += 1
        self.dies_in = None

    def _change(self, *change: tuple[str, _Inode | None]) -> None:
        _apply(self._names, change)
        self._undone.append(change)

    def _lose(self, inode: _Inode) -> None:
        for write in inode.unsynced:
            if self.world.chance(0.5):
                content = None if write.content is None else self.torn(write.content)
                _put(inode.durable, _Write(write.offset, content))
        inode.unsynced.clear()
        inode.seen = bytearray(inode.durable)


class SimFile:
    """`ports.File`. Of no use once its node has died."""

    def __init__(self, disk: SimDisk, inode: _Inode) -> None:
        self._disk = disk
        self._inode = inode
        self._life = disk.life

    def write(self, content: Buffer, offset: int) -> None:
        disk = self._disk
        self._check()
        written = bytes(content)
        lacking = max(0, offset + len(written) - len(self._inode.seen) - disk.room())
        if lacking:
            self._write(written[: max(0, len(written) - lacking)], offset)
            raise StorageFull(disk.where)
        if disk.world.chance(disk.faults.write_fails):
            self._write(written[: disk.world.between(0, len(written))], offset)
            raise StorageFailed(disk.where, "a failed write of the simulation")
        self._write(written, offset)

    def sync(self) -> None:
        disk, inode = self._disk, self._inode
        self._check()
        failed = disk.world.chance(disk.faults.sync_fails)
        for write in inode.unsynced:
            if not failed or disk.world.chance(0.5):
                _put(inode.durable, write)
        inode.unsynced.clear()
        if failed:
            raise StorageFailed(disk.where, "a failed sync of the simulation")

    def truncate(self, size: int) -> None:
        self._check()
        self._note(_Write(size, None))

    def close(self) -> None:
        """Nothing is lost and nothing made sure."""

    def _write(self, content: bytes, offset: int) -> None:
        self._note(_Write(offset, content))

    def _note(self, write: _Write) -> None:
        _put(self._inode.seen, write)
        self._inode.unsynced.append(write)

    def _check(self) -> None:
        if self._life != self._disk.life:
            raise PowerCut
        self._disk.operate()


def _apply(names: _Names, change: _Change) -> None:
    for name, inode in change:
        if inode is None:
            names.pop(name, None)
        else:
            names[name] = inode


def _put(content: bytearray, write: _Write) -> None:
    if write.content is None:
        del content[write.offset :]
        content.extend(bytes(write.offset - len(content)))
    else:
        content.extend(bytes(max(0, write.offset - len(content))))
        content[write.offset : write.offset + len(write.content)] = write.content
