"""Ranges come from files and over HTTP, whatever the store does."""

import os
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from pathlib import Path
from typing import NamedTuple

import pytest

from anabranch.errors import Unavailable
from anabranch_spark.source.fetch import (
    AHEAD_MAX,
    HELD_BYTES_MAX,
    TIMEOUT_S,
    CutShort,
    Fetcher,
    ObjectGone,
    UrlRefused,
)

CONTENT = bytes(range(256)) * 40


class At(NamedTuple):
    url: str
    offset: int
    length: int


class Store(ThreadingHTTPServer):
    """It answers `/object` with a range of it, and fails first as often as it is told."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answer)
        self.asked: list[str] = []
        self.faults: list[int] = []
        """Statuses that the next requests get; 0 closes the connection."""
        self.cut = 0
        """So many bytes are missing at the end."""
        self.more = 0
        """Bodies go on for so many bytes, without a length; they are counted in `sent`."""
        self.sent = 0
        self.slowly: threading.Semaphore | None = None
        """A byte each time that it is released."""

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that hangs up is no news."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/object?signed=yes"


class Answer(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Store  # pyright: ignore[reportIncompatibleVariableOverride]

    def do_GET(self) -> None:
        asked = self.headers["Range"]
        self.server.asked.append(f"{self.path} {asked}")
        status = self.server.faults.pop(0) if self.server.faults else 206
        if not status:
            self.close_connection = True
            return
        first, last = map(int, asked.removeprefix("bytes=").split("-"))
        body = CONTENT[first : last + 1] if status == 206 else b"no"
        body = body[: len(body) - self.server.cut]
        self.send_response(status)
        if self.server.more:
            self.close_connection = True
            self.end_headers()
            self.go_on(body)
            return
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.server.slowly is not None:
            self.close_connection = True
            for byte in body:
                if not self.server.slowly.acquire(timeout=TIMEOUT_S):
                    return
                self.wfile.write(bytes([byte]))
            return
        self.wfile.write(body)

    def go_on(self, body: bytes) -> None:
        try:
            while self.server.sent < self.server.more:
                self.wfile.write(body)
                self.server.sent += len(body)
        except OSError:
            """The reader has hung up."""

    def log_message(self, *_: object, **__: object) -> None:
        """Nobody reads it."""


@pytest.fixture
def store() -> Iterator[Store]:
    store = Store()
    thread = threading.Thread(target=store.serve_forever)
    thread.start()
    yield store
    store.shutdown()
    thread.join()
    store.server_close()


@pytest.fixture
def fetcher() -> Iterator[Fetcher]:
    with Fetcher(tries=3, pause_s=0) as fetcher:
        yield fetcher


def test_exactly_the_range_is_asked_for(store: Store, fetcher: Fetcher) -> None:
    assert fetcher.get(At(store.url, 10, 20)).content == CONTENT[10:30]
    assert store.asked == ["/object?signed=yes bytes=10-29"]


@pytest.mark.parametrize("faults", [[503], [429, 500], [0], [0, 503]])
def test_a_store_that_is_away_for_a_while_is_asked_again(
    store: Store, fetcher: Fetcher, faults: list[int]
) -> None:
    store.faults = [*faults]
    assert fetcher.get(At(store.url, 0, 5)).content == CONTENT[:5]
    assert len(store.asked) == len(faults) + 1


def test_a_store_that_stays_away_is_named_without_the_signature(
    store: Store, fetcher: Fetcher
) -> None:
    store.faults = [503] * 9
    with pytest.raises(Unavailable, match=r"127\.0\.0\.1.* answers 503, 3 times") as refused:
        fetcher.get(At(store.url, 0, 5))
    assert "signed" not in refused.value.message
    assert len(store.asked) == 3


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (404, ObjectGone),
        (403, UrlRefused),
        (400, UrlRefused),
        (200, UrlRefused),
        (416, CutShort),
    ],
)
def test_what_the_store_says_is_told_at_once(
    store: Store, fetcher: Fetcher, status: int, kind: type[Exception]
) -> None:
    store.faults = [status] * 3
    fetched = fetcher.get(At(store.url, 0, 5))
    assert (fetched.content, type(fetched.fault)) == (b"", kind)
    assert len(store.asked) == 1


def test_fewer_bytes_than_were_asked_for_are_a_fault(store: Store, fetcher: Fetcher) -> None:
    store.cut = 1
    assert isinstance(fetcher.get(At(store.url, 0, 5)).fault, CutShort)


def test_an_answer_without_an_end_is_read_no_further_than_was_asked(
    store: Store, fetcher: Fetcher
) -> None:
    store.more = 1 << 30
    assert isinstance(fetcher.get(At(store.url, 0, 10_000)).fault, CutShort)
    assert store.sent < 1 << 28, "what the network holds, and no more"
    store.more = 0
    assert fetcher.get(At(store.url, 0, 5)).content == CONTENT[:5]


def test_a_store_that_gives_a_byte_now_and_then_holds_nobody_for_ever(store: Store) -> None:
    store.slowly = bytes_due = threading.Semaphore(0)
    seconds = count(step=TIMEOUT_S)

    def clock() -> float:
        bytes_due.release()
        return next(seconds)

    with (
        Fetcher(tries=1, clock=clock) as fetcher,
        pytest.raises(Unavailable, match="2 of 200 bytes came in time"),
    ):
        fetcher.get(At(store.url, 0, 200))
    bytes_due.release(200)


@pytest.mark.parametrize("url", ["ftp://a/b", "gopher://a/b", "/etc/passwd", ""])
def test_only_files_and_http_are_fetched(fetcher: Fetcher, url: str) -> None:
    assert isinstance(fetcher.get(At(url, 0, 5)).fault, UrlRefused)


def test_what_is_no_file_is_no_object(fetcher: Fetcher, tmp_path: Path) -> None:
    """A pipe would be waited for."""
    os.mkfifo(tmp_path / "pipe")
    for each in (tmp_path, tmp_path / "pipe"):
        with pytest.raises(Unavailable):
            fetcher.get(At(each.as_uri(), 0, 5))


def test_all_places_come_in_order(store: Store, fetcher: Fetcher) -> None:
    places = [At(store.url, 100 * nth, 100) for nth in range(30)]
    found = [*fetcher.each(places)]
    assert [each.place for each in found] == places
    assert b"".join(each.content for each in found) == CONTENT[:3_000]


def test_files_are_read_where_they_lie(tmp_path: Path, fetcher: Fetcher) -> None:
    path = tmp_path / "an object"
    path.write_bytes(CONTENT)
    assert fetcher.get(At(path.as_uri(), 7, 9)).content == CONTENT[7:16]
    assert isinstance(fetcher.get(At(path.as_uri(), len(CONTENT) - 2, 9)).fault, CutShort)
    path.unlink()
    assert isinstance(fetcher.get(At(path.as_uri(), 7, 9)).fault, ObjectGone)


class Counting(Fetcher):
    """Fetches nothing, and counts the GETs that were begun."""

    def __init__(self) -> None:
        super().__init__()
        self.begun = 0

    def _content(self, place: object) -> bytes:
        self.begun += 1
        return b""


@pytest.mark.parametrize(
    ("length", "ahead"),
    [(1, AHEAD_MAX), (HELD_BYTES_MAX // 2, 2), (HELD_BYTES_MAX + 1, 1)],
)
def test_no_more_is_taken_ahead_than_may_be_held(length: int, ahead: int) -> None:
    taken = 0

    def places() -> Iterator[At]:
        nonlocal taken
        for nth in range(10):
            taken += 1
            yield At("", nth, length)

    with Counting() as fetcher:
        found = fetcher.each(places())
        next(found)
        # The place that didn't fit any more was looked at, and not asked for.
        assert taken == ahead + 1
        assert fetcher.begun <= ahead
        found.close()


def test_a_reader_that_stops_leaves_no_thread(tmp_path: Path) -> None:
    path = tmp_path / "object"
    path.write_bytes(CONTENT)
    before = {*threading.enumerate()}
    with Fetcher() as fetcher:
        next(fetcher.each([At(path.as_uri(), nth, 5) for nth in range(50)]))
        own = {*threading.enumerate()} - before
    assert own
    for each in own:
        each.join(60)
        assert not each.is_alive()
