"""The C allocator, told to keep the memory it has: batches come and go thousands of times a second.

glibc returns freed buffers over 128 KiB to the kernel, which gives them back zeroed, page by page:
that took twice as long as all else that receiving a batch of 64 KiB takes.
"""

import ctypes

_TRIM_THRESHOLD, _TOP_PAD, _MMAP_THRESHOLD = -1, -2, -3
"""As malloc.h names them."""

KEPT_BYTES = 256 << 20
"""Free memory at the end of the heap that isn't returned."""
_GROWS_BY_BYTES = 16 << 20
_MAPPED_FROM_BYTES = 32 << 20
"""The most that glibc accepts."""


def return_memory() -> None:
    """Give free memory above a reserve back to the system, after an unusual load."""
    try:
        malloc_trim = ctypes.CDLL(None).malloc_trim
    except (OSError, AttributeError):
        return
    malloc_trim(KEPT_BYTES // 4)


def keep_memory() -> bool:
    """For the life of the process; False if its C library isn't glibc, and then nothing changes."""
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return False
    settings = (
        (_TRIM_THRESHOLD, KEPT_BYTES),
        (_TOP_PAD, _GROWS_BY_BYTES),
        (_MMAP_THRESHOLD, _MAPPED_FROM_BYTES),
    )
    return all(mallopt(name, value) == 1 for name, value in settings)
