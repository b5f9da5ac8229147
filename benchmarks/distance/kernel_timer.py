"""A timer of the kernel that an event loop hears: exact to some ten microseconds."""

import asyncio
import ctypes
import os
import struct
from collections.abc import Callable

_libc = ctypes.CDLL(None, use_errno=True)
_CLOCK_MONOTONIC = 1
_SPECIFICATION = struct.Struct("@4l")
"""Of `itimerspec`: the interval, which is none, and the time, both in s and ns."""
_EXPIRATIONS_BYTES = 8
_SECOND_NS = 1_000_000_000


class KernelTimer:
    """Calls `ring` once for each `set`. Python 3.13 has `os.timerfd_create`; before, libc does."""

    def __init__(self, loop: asyncio.AbstractEventLoop, ring: Callable[[], None]) -> None:
        self._fd = _libc.timerfd_create(_CLOCK_MONOTONIC, os.O_NONBLOCK | os.O_CLOEXEC)
        if self._fd < 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        self._loop, self._ring = loop, ring
        loop.add_reader(self._fd, self._heard)

    def set(self, wait_ns: int) -> None:
        """Ring after so long, and not at the time that was set before."""
        assert wait_ns > 0, "a time of 0 would disarm the timer"
        time = _SPECIFICATION.pack(0, 0, *divmod(wait_ns, _SECOND_NS))
        if _libc.timerfd_settime(self._fd, 0, time, None):
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))

    def close(self) -> None:
        self._loop.remove_reader(self._fd)
        os.close(self._fd)

    def _heard(self) -> None:
        try:
            os.read(self._fd, _EXPIRATIONS_BYTES)
        except BlockingIOError:
            return  # it was set anew after it had rung
        self._ring()
