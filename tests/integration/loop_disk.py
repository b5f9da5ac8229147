"""A small file system of its own, which can lose its power, fill up, or turn read-only."""

import fcntl
import os
import shutil
import struct
import subprocess
from pathlib import Path

EXT4_IOC_SHUTDOWN = 0x8004587D
NO_LOG_FLUSH = 2
MEGABYTES = 32


class LoopDisk:
    """A small ext4 in a file, whose power can be cut under whoever writes on it."""

    def __init__(self, folder: Path) -> None:
        self.image = folder / "image"
        self.mount = folder / "mount"
        self.mount.mkdir()
        with self.image.open("wb") as image:
            image.truncate(MEGABYTES << 20)
        run("mkfs.ext4", "-q", "-F", str(self.image))

    @staticmethod
    def obstacle() -> str | None:
        """Why there can't be one here."""
        if os.geteuid() != 0:
            return "only root can mount a file system"
        for tool in ("mkfs.ext4", "mount", "umount"):
            if shutil.which(tool) is None:
                return f"{tool} isn't installed"
        return None

    def attach(self) -> None:
        run("mount", "-o", "loop", str(self.image), str(self.mount))

    def cut_power(self) -> None:
        """What was synced stays, what was not is gone, every write fails until `restore`."""
        directory = os.open(self.mount, os.O_RDONLY)
        try:
            fcntl.ioctl(directory, EXT4_IOC_SHUTDOWN, struct.pack("I", NO_LOG_FLUSH))
        finally:
            os.close(directory)

    def restore(self) -> None:
        run("umount", str(self.mount))
        self.attach()

    def fill(self) -> Path:
        """Take all the space that is left, to the last block."""
        ballast = self.mount / "ballast"
        with ballast.open("wb", buffering=0) as file:
            for size in (1 << 20, 4096, 1):
                try:
                    while True:
                        file.write(b"\0" * size)
                except OSError:
                    continue
        return ballast

    def detach(self) -> None:
        """Lazily: the traceback of a test that failed may still hold files open."""
        run("umount", "-l", str(self.mount))


def run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True)
