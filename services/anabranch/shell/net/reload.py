"""What is made from files, and made anew when they have changed: certificates, above all."""

import os
from collections.abc import Callable
from typing import Generic, TypeVar

from anabranch.core.errors import BadRequest
from anabranch.shell.telemetry.log import Log

T = TypeVar("T")

_Mark = tuple[int, int, int]


class Renewed(Generic[T]):
    """The files are looked at each time that it is wanted, which costs a system call for each.

    `make` raises BadRequest if they don't fit: while they are being replaced they may not, and so
    what was made before serves until they do. For any thread.
    """

    def __init__(self, files: tuple[str, ...], make: Callable[[], T], log: Log | None) -> None:
        self._files = files
        self._make = make
        self._log = log
        self._seen = self._marks()
        self._made = make()
        self._misfit = False

    def current(self) -> T:
        found = self._marks()
        if found != self._seen or self._misfit:
            self._seen = found
            self._renew()
        return self._made

    def _renew(self) -> None:
        try:
            self._made = self._make()
        except BadRequest as wrong:
            if not self._misfit:
                self._say("kept what was made of files that don't fit now", wrong.message)
            self._misfit = True
            return
        self._misfit = False
        self._say("read files anew", " ".join(self._files))

    def _say(self, what: str, detail: str) -> None:
        if self._log is not None:
            self._log.info(what, detail=detail)

    def _marks(self) -> tuple[_Mark | None, ...]:
        """A secret that Kubernetes renews is another file under the same name."""
        return tuple(map(_mark, self._files))


def _mark(file: str) -> _Mark | None:
    try:
        found = os.stat(file)
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size
