"""Objects of a compaction, written by signed PUTs and into folders."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from anabranch.core.bolt.protocol.compactors import SignedCopy
from anabranch.core.types import ObjectId
from anabranch.errors import Unavailable
from anabranch_spark.compact import writing
from anabranch_spark.compact.writing import Refused, write

CONTENT = b"what a copy holds"


class Store:
    """Answers PUTs with these statuses, one after the other, and keeps what came."""

    def __init__(self, statuses: list[int]) -> None:
        self.statuses = statuses
        self.came: list[tuple[str, dict[str, str], bytes]] = []

    @contextmanager
    def serving(self) -> Iterator[str]:
        store = self

        class Handler(BaseHTTPRequestHandler):
            def do_PUT(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                headers = {name.lower(): value for name, value in self.headers.items()}
                store.came.append((self.path, headers, body))
                self.send_response(store.statuses.pop(0))
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()
            server.server_close()


def target(url: str) -> SignedCopy:
    headers = {"content-length": str(len(CONTENT)), "if-none-match": "*"}
    return SignedCopy(ObjectId(1), url, headers)


@pytest.mark.parametrize("statuses", [[200], [412], [503, 200], [409, 429, 200]])
def test_a_put_has_all_signed_headers_and_is_repeated_until_the_object_is_there(
    statuses: list[int],
) -> None:
    store = Store([*statuses])
    with store.serving() as url:
        write(target(f"{url}/c/data/1?X-Amz-Signature=abc"), CONTENT, pause_s=0)
    assert len(store.came) == len(statuses)
    path, headers, body = store.came[-1]
    assert (path, body) == ("/c/data/1?X-Amz-Signature=abc", CONTENT)
    assert (headers["if-none-match"], headers["content-length"]) == ("*", str(len(CONTENT)))


@pytest.mark.parametrize("status", [400, 403])
def test_a_put_that_the_store_refuses_is_not_repeated(status: int) -> None:
    store = Store([status])
    with store.serving() as url, pytest.raises(Refused, match=str(status)):
        write(target(f"{url}/c/data/1?X-Amz-Signature=abc"), CONTENT, pause_s=0)
    assert len(store.came) == 1


def test_a_store_that_stays_away_is_said_without_the_signature() -> None:
    with Store([503] * writing.TRIES).serving() as url, pytest.raises(Unavailable) as caught:
        write(target(f"{url}/c/data/1?X-Amz-Signature=abc"), CONTENT, pause_s=0)
    assert "abc" not in caught.value.message
    with pytest.raises(Unavailable):
        write(target(f"{url}/c/data/1?X-Amz-Signature=abc"), CONTENT, pause_s=0)


def test_a_file_is_created_once_and_whole(tmp_path: Path) -> None:
    path = tmp_path / "c" / "data" / "00000003" / "1"
    write(target(path.as_uri()), CONTENT)
    assert path.read_bytes() == CONTENT
    write(target(path.as_uri()), b"something else")
    assert path.read_bytes() == CONTENT, "nothing is overwritten"
    assert [each.name for each in path.parent.iterdir()] == ["1"]
