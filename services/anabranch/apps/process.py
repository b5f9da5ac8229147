"""What every process of ours does at its edges: listens, says where it is found, ends when told."""

import asyncio
import errno
import gc
import os
import resource
import signal
import socket
import sys
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path

import msgspec

from anabranch.apps.listeners import owner
from anabranch.core.errors import StorageFull, Unavailable
from anabranch.shell.journal.disk import storage
from anabranch.shell.telemetry.log import Log

_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Signals that end a process in order; a terminal that is closed sends the last one."""
SWITCH_S = 0.0005
"""A thread that comes back from the disk waits no longer than this for the interpreter."""

_YOUNG_OBJECTS = 10_000
"""Objects made before the collector looks for cycles among them. Python's 700 are those of a
hundred appends, which are all still in hand then: it looked at each of them and found nothing.
"""

_OTHER_FILES = 320
"""The journal, objects being read and written, the libraries, and the connections of probes."""
_BACKLOG = 1_024


async def bound(start: Callable[[str, int], Awaitable[int]], host: str, port: int) -> int:
    try:
        return await start(host, port)
    except OSError as error:
        raise _not_there(host, port, error) from None


async def listener(host: str, port: int) -> socket.socket:
    """A socket that takes connections which nobody answers yet; so its port is known early."""
    loop = asyncio.get_running_loop()
    try:
        found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        family, _, _, _, where = found[0]
        return socket.create_server(where[:2], family=family, backlog=_BACKLOG)
    except OSError as error:
        raise _not_there(host, port, error) from None


_LOOPBACK = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104  # to dial
"""By what stands for all addresses of a machine."""


def address(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def reached_at(host: str, port: int) -> str:
    """How the process reaches a port of its own, also one that it opened on all addresses."""
    return address(_LOOPBACK.get(host, host), port)


def announce(path: Path, endpoint: msgspec.Struct, log: Log) -> Callable[[], None]:
    """Write where the process is found, whole; what is returned takes it away again.

    A full disk keeps nobody from it who knows the address.
    """
    part = path.with_suffix(".part")
    with storage(str(path)):
        path.unlink(missing_ok=True)
        try:
            with storage(str(path)):
                part.write_bytes(msgspec.json.encode(endpoint) + b"\n")
                part.replace(path)
        except StorageFull as full:
            part.unlink(missing_ok=True)
            log.warning("clients aren't told the address", code=full.code, reason=full.message)

    return partial(withdraw, path)


def withdraw(path: Path) -> None:
    """Take away what a process wrote there, this one or one that was killed."""
    with storage(str(path)):
        path.unlink(missing_ok=True)


def ending_signals() -> list[signal.Signals]:
    """Those that end this process, without any that it was started to ignore, as by `nohup`."""
    return [number for number in _ENDING if signal.getsignal(number) is not signal.SIG_IGN]


def signalled() -> asyncio.Event:
    """Set by the first signal to end; the second ends at once, as a crash would."""
    stop = asyncio.Event()

    def told(number: signal.Signals) -> None:
        if stop.is_set():
            os._exit(128 + number)
        stop.set()

    for number in ending_signals():
        asyncio.get_running_loop().add_signal_handler(number, told, number)
    return stop


async def until_told(stop: asyncio.Event, ends: Sequence[asyncio.Future[str]]) -> str | None:
    """Why machines stopped by themselves, if they did."""
    waits = asyncio.ensure_future(stop.wait())
    await asyncio.wait((waits, *ends), return_when=asyncio.FIRST_COMPLETED)
    waits.cancel()
    return next((end.result() for end in ends if end.done()), None)


def prepare(connections_max: int) -> None:
    """Of an interpreter that is this process's alone."""
    sys.setswitchinterval(SWITCH_S)
    gc.set_threshold(_YOUNG_OBJECTS, *gc.get_threshold()[1:])
    _allow_files(connections_max)


def _allow_files(connections_max: int) -> None:
    """Every connection is an open file, and systems allow few unless they are asked."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = connections_max + _OTHER_FILES
    if hard != resource.RLIM_INFINITY:
        wanted = min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def connections_max(wanted: int) -> int:
    """As many as this process may have open beside its files: accepting more fails for all, those
    who append included.
    """
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return wanted
    return max(1, min(wanted, max(soft - _OTHER_FILES, soft // 2)))


def _not_there(host: str, port: int, error: OSError) -> Unavailable:
    reason = f"{error.strerror or error}: choose another port or address"
    by = owner(port) if error.errno == errno.EADDRINUSE else None
    if by is not None:
        reason = f"{error.strerror}, by {by}: choose another port, or end that process"
    return Unavailable(address(host, port), reason)
