"""Jars come whole or not at all, over a repository that fails in every way it can."""

import hashlib
import threading
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from anabranch.errors import BadRequest, Unavailable
from anabranch_spark.companions.fetch import ATTEMPTS, MAVEN_URL, find, obstacle
from anabranch_spark.companions.listing import Jar, Listing

CONTENT = bytes(range(256)) * 40
ENDLESS = 1 << 26
"""Far more than sockets buffer."""
PIECE = 1 << 14
JAR = Jar("org.example:tables:1.0", hashlib.sha256(CONTENT).hexdigest(), len(CONTENT))
LISTING = Listing(spark="4.1.3", groups={"tables": (JAR,)})


class Repository(ThreadingHTTPServer):
    """Serves one jar, and keeps what it was asked for."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answer)
        self.content = CONTENT
        self.cut: list[int] = []
        """Bytes after which an answer breaks off, one for each of the next requests."""
        self.honours_ranges = True
        self.asked: list[tuple[str, str | None]] = []
        self.sent = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/maven2/"


class Answer(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        server = self.server
        assert isinstance(server, Repository)
        asked = self.headers.get("Range")
        server.asked.append((self.path, asked))
        first = int(asked.split("=")[1].rstrip("-")) if asked and server.honours_ranges else 0
        body = server.content[first:]
        self.send_response(206 if first else 200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        body = body[: server.cut.pop(0)] if server.cut else body
        with suppress(ConnectionError):
            for at in range(0, len(body), PIECE):
                self.wfile.write(body[at : at + PIECE])
                server.sent += PIECE

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the base names it
        """Say nothing: the test has what was asked."""


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Repository]:
    with Repository() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
        monkeypatch.setenv(MAVEN_URL, server.url)
        yield server
        server.shutdown()
        thread.join()


def fetched() -> Path:
    (path,) = find(["tables"], listing=LISTING)
    return Path(path)


def test_a_jar_is_fetched_once_and_found_from_then_on(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = fetched()
    assert path.read_bytes() == CONTENT
    assert repository.asked == [("/maven2/org/example/tables/1.0/tables-1.0.jar", None)]
    monkeypatch.delenv(MAVEN_URL)
    monkeypatch.setenv("PATH", "")
    assert obstacle(["tables"], LISTING) is None
    assert fetched() == path
    assert len(repository.asked) == 1


def test_a_fetch_that_breaks_off_goes_on_where_it_stopped(repository: Repository) -> None:
    repository.cut = [1_000, 500]
    assert fetched().read_bytes() == CONTENT
    assert [part for _, part in repository.asked] == [None, "bytes=1000-", "bytes=1500-"]


def test_a_killed_fetch_is_continued_by_the_next_process(repository: Repository) -> None:
    repository.cut = [700] + [0] * (ATTEMPTS - 1)
    with pytest.raises(Unavailable):
        fetched()
    repository.asked.clear()
    assert fetched().read_bytes() == CONTENT
    assert repository.asked[0][1] == "bytes=700-"


def test_a_repository_without_ranges_sends_all_again(repository: Repository) -> None:
    repository.cut, repository.honours_ranges = [1_000], False
    assert fetched().read_bytes() == CONTENT


def test_other_bytes_are_refused_and_not_kept(repository: Repository) -> None:
    repository.content = CONTENT[:-1] + b"?"
    with pytest.raises(Unavailable, match="SHA-256"):
        fetched()
    repository.content = CONTENT
    assert fetched().read_bytes() == CONTENT


def test_an_answer_without_end_is_cut_off_at_the_jars_size(
    repository: Repository, tmp_path: Path
) -> None:
    repository.content = bytes(ENDLESS)
    with pytest.raises(Unavailable, match="SHA-256"):
        fetched()
    assert repository.sent < ENDLESS / 2, "it hung up"
    assert [each.name for each in tmp_path.rglob("*") if each.is_file()] == ["lock"]


def test_a_damaged_jar_is_fetched_anew(repository: Repository) -> None:
    path = fetched()
    path.write_bytes(CONTENT[:100] + b"!" + CONTENT[101:])
    assert fetched().read_bytes() == CONTENT
    assert len(repository.asked) == 2


def test_a_repository_that_isnt_there_is_named_as_the_reason(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(MAVEN_URL, "http://127.0.0.1:1/maven2")
    with pytest.raises(Unavailable, match=r"org.example:tables:1.0.*attempts"):
        fetched()


def test_what_is_no_repository_is_refused(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(MAVEN_URL, "file:///etc")
    with pytest.raises(BadRequest, match=MAVEN_URL):
        fetched()


def test_without_maven_or_a_repository_it_is_said_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv(MAVEN_URL, raising=False)
    assert MAVEN_URL in (obstacle(["tables"], LISTING) or "")
    with pytest.raises(Unavailable, match="neither Maven nor"):
        fetched()
