"""Files, read only where they are regular: a pipe would have all wait for its writer."""

import os
import stat
from typing import BinaryIO


def open_regular(path: str) -> BinaryIO:
    """Raises OSError, also if something else is in the file's place."""
    opened = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(opened).st_mode):
        os.close(opened)
        raise OSError("it isn't a regular file")
    return os.fdopen(opened, "rb")


def read_regular(path: str, bytes_max: int) -> bytes:
    """All of it. Raises OSError, also if it is larger."""
    with open_regular(path) as file:
        found = file.read(bytes_max + 1)
    if len(found) > bytes_max:
        raise OSError(f"it is larger than {bytes_max} bytes")
    return found
