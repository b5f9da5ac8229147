"""Write an object where its signed target says: by one PUT, or as a file that wasn't there."""

import http.client
import os
import secrets
import ssl
import time
from pathlib import Path
from urllib.parse import unquote, urlsplit

from anabranch.core.bolt.protocol.compactors import SignedCopy
from anabranch.errors import Unavailable

TIMEOUT_S = 60.0
TRIES = 5
PAUSE_S = 0.2
"""Before the second try; it doubles with each further one."""

_OK, _CONFLICT, _EXISTS, _SLOW_DOWN = 200, 409, 412, 429
_SERVER_FAULTS = 500


class Refused(Exception):
    """The store doesn't take this PUT, or no longer."""


def write(target: SignedCopy, content: bytes, *, pause_s: float = PAUSE_S) -> None:
    """An object that is there already counts as written: an earlier attempt of the same task wrote
    it. Whether it is this one is judged by whoever adopts it.
    """
    parts = urlsplit(target.url)
    if parts.scheme == "file":
        _write_file(Path(unquote(parts.path)), content)
        return
    pause, last = pause_s, ""
    for nth in range(TRIES):
        if nth:
            time.sleep(pause)
            pause *= 2
        try:
            status = _put(target, content)
        except (OSError, http.client.HTTPException) as fault:
            last = f"{type(fault).__name__}: {fault}"
            continue
        if status in (_OK, _EXISTS):
            return
        if status < _SERVER_FAULTS and status not in (_CONFLICT, _SLOW_DOWN):
            # What the store says of itself isn't for messages: it may quote the signed URL.
            raise Refused(f"the store refuses the signed PUT ({status})")
        last = f"it answers {status}"
    raise Unavailable(f"the object store at {parts.netloc}", f"{last}, {TRIES} times")


def _put(target: SignedCopy, content: bytes) -> int:
    parts = urlsplit(target.url)
    host, port = parts.hostname or "", parts.port
    if parts.scheme == "https":
        context = ssl.create_default_context()
        connection = http.client.HTTPSConnection(host, port, timeout=TIMEOUT_S, context=context)
    else:
        connection = http.client.HTTPConnection(host, port, timeout=TIMEOUT_S)
    try:
        connection.request("PUT", f"{parts.path}?{parts.query}", content, target.headers)
        with connection.getresponse() as response:
            response.read()
            return response.status
    finally:
        connection.close()


def _write_file(path: Path, content: bytes) -> None:
    """Durable before it has its name, as the service itself writes objects. A file whose name
    begins with a dot is no object.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        file = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(file, "wb") as out:
            out.write(content)
            out.flush()
            os.fdatasync(out.fileno())
        try:
            os.link(part, path)
        except FileExistsError:
            return
    finally:
        part.unlink(missing_ok=True)
    for folder in (path.parent, path.parent.parent):
        _sync(folder)


def _sync(folder: Path) -> None:
    file = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(file)
    finally:
        os.close(file)
