"""Which process listens at a port of this machine, as Linux tells it in /proc."""

from collections.abc import Iterator
from pathlib import Path

_PROC = Path("/proc")
_TABLES = ("tcp", "tcp6")
_LISTEN = "0A"
_COMMAND_CHARS_MAX = 80


def owner(port: int) -> str | None:
    """The command and number of the process that listens at this port; None if that can't be
    found out, because nobody does or the process belongs to another user.
    """
    sockets = _listening(_PROC / "self", port)
    if not sockets:
        return None
    for process in _PROC.iterdir():
        if process.name.isdigit() and _holds(process, sockets):
            return f"{_command(process)} (process {process.name})"
    return None


def listens(pid: int, port: int) -> bool:
    """Whether this process, in its own network namespace, listens at this port."""
    process = _PROC / str(pid)
    return _holds(process, _listening(process, port))


def _listening(process: Path, port: int) -> frozenset[str]:
    """The sockets that listen at a port, in the network namespace of a process."""
    return frozenset(f"socket:[{inode}]" for inode in _inodes(process, port))


def _inodes(process: Path, port: int) -> Iterator[str]:
    for table in _TABLES:
        try:
            rows = (process / "net" / table).read_text(encoding="ascii").splitlines()[1:]
        except OSError:
            continue
        for row in rows:
            fields = row.split()
            if fields[3] == _LISTEN and int(fields[1].rpartition(":")[2], 16) == port:
                yield fields[9]


def _holds(process: Path, sockets: frozenset[str]) -> bool:
    if not sockets:
        return False
    try:
        files = list((process / "fd").iterdir())
    except OSError:
        return False
    return any(_target(file) in sockets for file in files)


def _target(file: Path) -> str:
    try:
        return str(file.readlink())
    except OSError:
        return "closed since it was listed"


def _command(process: Path) -> str:
    try:
        words = (process / "cmdline").read_bytes().rstrip(b"\0").split(b"\0")
    except OSError:
        return "a process that has just ended"
    shown = b" ".join(words).decode(errors="replace")
    return shown if len(shown) <= _COMMAND_CHARS_MAX else f"{shown[: _COMMAND_CHARS_MAX - 3]}..."
