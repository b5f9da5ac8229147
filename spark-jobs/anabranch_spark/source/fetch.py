"""Get ranges of objects from the store: from files, or by HTTP with the Range that was signed."""

import http.client
import os
import ssl
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from typing import Generic, NamedTuple, Protocol, Self, TypeVar
from urllib.parse import SplitResult, unquote, urlsplit

from anabranch.errors import Unavailable

TIMEOUT_S = 30.0
"""Without a byte of an answer for so long, a GET is tried again."""
BYTES_PER_S_MIN = 64 << 10
"""A GET that is slower on average, beyond `TIMEOUT_S`, is tried again: a store that gives a byte
now and then would hold a task for ever.
"""
TRIES = 5
PAUSE_S = 0.2
"""Before the second try; it doubles with each further one."""
AHEAD_MAX = 4
"""GETs under way at a time, for each task."""
HELD_BYTES_MAX = 32 << 20
"""Bytes of them that a task holds or waits for, unless it is one GET."""

_CHUNK_BYTES = 256 << 10
_FOLDER = "the object store's folder on this machine"
_PARTIAL, _MISSING, _PAST_END, _SLOW_DOWN = 206, 404, 416, 429
_SERVER_FAULTS = 500


class ObjectGone(Exception):
    """The store has no such object."""


class UrlRefused(Exception):
    """The store doesn't take the URL, or no longer."""


class CutShort(Exception):
    """The object ends before the range does."""


Content = bytes | bytearray


class Place(Protocol):
    """Bytes of an object, and the URL that fetches them."""

    @property
    def offset(self) -> int: ...
    @property
    def length(self) -> int: ...
    @property
    def url(self) -> str: ...


P = TypeVar("P", bound=Place)


class Fetched(NamedTuple, Generic[P]):
    """A place with its bytes, or why there are none."""

    place: P
    content: Content
    fault: ObjectGone | UrlRefused | CutShort | None


class Fetcher:
    """Fetches ahead of whoever decodes, on threads of its own; close it, or use it with `with`."""

    def __init__(
        self,
        *,
        tries: int = TRIES,
        pause_s: float = PAUSE_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._tries, self._pause_s, self._clock = tries, pause_s, clock
        self._threads = ThreadPoolExecutor(AHEAD_MAX, "anabranch-get")
        self._local = threading.local()
        self._opened: list[http.client.HTTPConnection] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let GETs that haven't begun go, and close every connection."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        for each in self._opened:
            each.close()

    def each(self, places: Iterable[P]) -> Generator[Fetched[P]]:
        """Every place in order with its bytes, the next ones being fetched meanwhile."""
        yield from _ahead(places, lambda place: self._threads.submit(self.get, place))

    def get(self, place: P) -> Fetched[P]:
        """The place with its bytes. Unavailable if the store doesn't answer."""
        try:
            return Fetched(place, self._content(place), None)
        except (ObjectGone, UrlRefused, CutShort) as fault:
            return Fetched(place, b"", fault)

    def _content(self, place: Place) -> Content:
        url = urlsplit(place.url)
        if url.scheme == "file":
            return _of_file(unquote(url.path), place)
        if url.scheme not in ("http", "https"):
            raise UrlRefused(f"nothing here fetches {url.scheme[:20]!r} URLs")
        pause, last = self._pause_s, ""
        for nth in range(self._tries):
            if nth:
                time.sleep(pause)
                pause *= 2
            try:
                found = self._of_http(url, place)
            except (OSError, http.client.HTTPException) as fault:
                self._forget(url)
                last = f"{type(fault).__name__}: {fault}"
                continue
            if not isinstance(found, int):
                return found
            last = f"it answers {found}"
        raise Unavailable(f"the object store at {url.netloc}", f"{last}, {self._tries} times")

    def _of_http(self, url: SplitResult, place: Place) -> bytearray | int:
        """The bytes, or the status with which the store puts the reader off."""
        connection = self._connection(url)
        target = url.path + (f"?{url.query}" if url.query else "")
        last = place.offset + place.length - 1
        connection.request("GET", target, headers={"Range": f"bytes={place.offset}-{last}"})
        with connection.getresponse() as response:
            if response.status == _PARTIAL:
                try:
                    return self._body(response, place.length)
                except CutShort:
                    self._forget(url)  # what is left of the body would be the next answer
                    raise
            # What the store says of itself isn't for messages: it may quote the signed URL.
            self._forget(url)
            if response.status == _MISSING:
                raise ObjectGone("the store has no such object")
            if response.status >= _SERVER_FAULTS or response.status == _SLOW_DOWN:
                return response.status
            if response.status == _PAST_END:
                raise CutShort("the object ends before the range begins (416)")
            # 403, and of some stores 400 where a URL has lapsed.
            raise UrlRefused(f"the store refuses the signed URL ({response.status})")

    def _body(self, response: http.client.HTTPResponse, length: int) -> bytearray:
        """As many bytes as were asked for: a store may send others, without an end or slowly."""
        if response.length not in (None, length):
            raise CutShort(f"{response.length} bytes came of {length}")
        # Where the store says how many come, they come without a copy.
        read = _read_into(response) if response.length is None else response.fp.readinto1
        content = bytearray(length)
        view = memoryview(content)
        until = self._clock() + TIMEOUT_S + length / BYTES_PER_S_MIN
        came = 0
        while came < length:
            got = read(view[came:])
            came += got
            if not got:
                raise CutShort(f"{came} bytes came of {length}")
            if came < length and self._clock() > until:
                raise TimeoutError(f"{came} of {length} bytes came in time")
        if response.length is None and response.read1(1):
            raise CutShort(f"more than {length} bytes came of {length}")
        return content

    def _connection(self, url: SplitResult) -> http.client.HTTPConnection:
        """The connection of the calling thread to the store."""
        held: dict[str, http.client.HTTPConnection] = self._local.__dict__
        found = held.get(url.netloc)
        if found is None:
            host, port = url.hostname or "", url.port
            if url.scheme == "https":
                found = http.client.HTTPSConnection(
                    host, port, timeout=TIMEOUT_S, context=_certificates()
                )
            else:
                found = http.client.HTTPConnection(host, port, timeout=TIMEOUT_S)
            held[url.netloc] = found
            self._opened.append(found)
        return found

    def _forget(self, url: SplitResult) -> None:
        held: dict[str, http.client.HTTPConnection] = self._local.__dict__
        found = held.pop(url.netloc, None)
        if found is not None:
            self._opened.remove(found)
            found.close()


def _ahead(places: Iterable[P], submit: Callable[[P], Future[Fetched[P]]]) -> Generator[Fetched[P]]:
    under_way: deque[tuple[P, Future[Fetched[P]]]] = deque()
    held = 0
    try:
        for place in places:
            while under_way and (
                len(under_way) >= AHEAD_MAX or held + place.length > HELD_BYTES_MAX
            ):
                first, future = under_way.popleft()
                yield future.result()
                held -= first.length
            under_way.append((place, submit(place)))
            held += place.length
        while under_way:
            yield under_way.popleft()[1].result()
    finally:
        for _, future in under_way:
            future.cancel()


def _read_into(response: http.client.HTTPResponse) -> Callable[[memoryview], int]:
    def read(room: memoryview) -> int:
        chunk = response.read1(min(len(room), _CHUNK_BYTES))
        room[: len(chunk)] = chunk
        return len(chunk)

    return read


def _of_file(path: str, place: Place) -> bytes:
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError:
        raise ObjectGone(f"{path} isn't there") from None
    except OSError as fault:
        raise Unavailable(_FOLDER, str(fault)) from None
    try:
        content = os.pread(file, place.length, place.offset)
    except OSError as fault:
        raise Unavailable(_FOLDER, str(fault)) from None
    finally:
        os.close(file)
    if len(content) != place.length:
        raise CutShort(f"{len(content)} bytes came of {place.length}")
    return content


@cache
def _certificates() -> ssl.SSLContext:
    """The system's, or those that SSL_CERT_FILE names."""
    return ssl.create_default_context()
