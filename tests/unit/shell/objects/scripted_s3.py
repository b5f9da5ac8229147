"""An object store on loopback that speaks as much of S3 as its clients ask for, and fails as it is
told.

A real server is asked in tests/integration/s3. This one does what a real one can't be made to do,
and needs no binary.
"""

import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit
from xml.etree import ElementTree as ET
from xml.sax.saxutils import escape

from anabranch.shell.objects.s3.settings import S3Settings

DATE = "2026-01-02T03:04:05.000Z"
HTTP_DATE = "Fri, 02 Jan 2026 03:04:05 GMT"


@dataclass
class Stored:
    content: bytes
    headers: dict[str, str] = field(default_factory=dict[str, str])


@dataclass
class Answer:
    status: int
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict[str, str])
    cut: int | None = None
    """Send no more of the body than this, and hang up."""


def error(status: int, code: str, message: str = "as it was told") -> Answer:
    said = f"<Error><Code>{code}</Code><Message>{escape(message)}</Message></Error>"
    return Answer(status, said.encode(), {"Content-Type": "application/xml"})


Fault = Callable[[str, str], Answer | None]
"""By method and name; None answers as usual."""


class ScriptedS3:
    """`faults` are used up one by one, each by the next request that it has an answer to."""

    def __init__(self) -> None:
        self.objects: dict[str, Stored] = {}
        self.faults: deque[Fault] = deque()
        self.lost: deque[str] = deque()
        """Methods of which the next one is done, and its answer lost."""
        self.asked: list[tuple[str, str]] = []
        self._lock = threading.Lock()
        self.endpoint = ""

    def settings(self, **more: object) -> S3Settings:
        given: dict[str, object] = {
            "bucket": "b",
            "endpoint": self.endpoint,
            "access_key": "key",
            "secret_key": "secret",
            "retry_ms": 1,
            "retry_ms_max": 5,
        }
        return S3Settings(**{**given, **more})  # pyright: ignore[reportArgumentType]

    @contextmanager
    def serving(self) -> Iterator["ScriptedS3"]:
        scripted = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def _do(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                scripted._handle(self, body)

            do_GET = do_PUT = do_HEAD = do_POST = do_DELETE = _do  # noqa: N815 - as called

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - as called
                return

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        server.daemon_threads = True
        self.endpoint = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield self
        finally:
            server.shutdown()
            server.server_close()
            thread.join()

    def fail(self, answer: Answer, *, method: str = "", times: int = 1) -> None:
        """The next requests of this method, or of any, are answered so."""

        def fault(asked: str, name: str) -> Answer | None:
            return answer if method in {"", asked} else None

        self.faults.extend([fault] * times)

    def _handle(self, handler: BaseHTTPRequestHandler, body: bytes) -> None:
        parts = urlsplit(handler.path)
        name = unquote(parts.path).removeprefix("/b").removeprefix("/")
        query = parse_qs(parts.query, keep_blank_values=True)
        method = handler.command
        with self._lock:
            self.asked.append((method, name))
            answer = self._fault(method, name)
            if answer is None:
                headers = {key.lower(): value for key, value in handler.headers.items()}
                answer = self._answer(method, name, query, headers, body)
                if self.lost and self.lost[0] == method:
                    self.lost.popleft()
                    answer = Answer(200, b"", cut=0)
        self._send(handler, answer, silent=method == "HEAD")

    def _fault(self, method: str, name: str) -> Answer | None:
        for fault in list(self.faults):
            answer = fault(method, name)
            if answer is not None:
                self.faults.remove(fault)
                return answer
        return None

    def _send(self, handler: BaseHTTPRequestHandler, answer: Answer, *, silent: bool) -> None:
        if answer.cut == 0:
            handler.close_connection = True
            return
        handler.send_response(answer.status)
        size = answer.headers.get("Content-Length", str(len(answer.body)))
        for key, value in {**answer.headers, "Content-Length": size}.items():
            handler.send_header(key, value)
        handler.end_headers()
        if not silent:
            handler.wfile.write(answer.body[: answer.cut])
        if answer.cut is not None:
            handler.close_connection = True

    def _answer(
        self,
        method: str,
        name: str,
        query: dict[str, list[str]],
        headers: dict[str, str],
        body: bytes,
    ) -> Answer:
        if method == "PUT":
            return self._put(name, headers, body)
        if method == "POST" and "delete" in query:
            return self._delete(body)
        if method == "DELETE":
            self.objects.pop(name, None)
            return Answer(204)
        if method == "GET" and "list-type" in query:
            return self._list(query)
        return self._get(name, headers)

    def _put(self, name: str, headers: dict[str, str], body: bytes) -> Answer:
        if headers.get("if-none-match") == "*" and name in self.objects:
            return error(412, "PreconditionFailed")
        kept = {key: value for key, value in headers.items() if key.startswith("x-amz-meta-")}
        self.objects[name] = Stored(body, kept)
        return Answer(200, headers={"ETag": '"1"'})

    def _get(self, name: str, headers: dict[str, str]) -> Answer:
        found = self.objects.get(name)
        if found is None:
            return error(404, "NoSuchKey")
        told = {**found.headers, "ETag": '"1"', "Last-Modified": HTTP_DATE}
        wanted = headers.get("range")
        if wanted is None:
            return Answer(200, found.content, told)
        first, _, last = wanted.removeprefix("bytes=").partition("-")
        start, size = int(first), len(found.content)
        if start >= size:
            return error(416, "InvalidRange")
        end = min(int(last) + 1 if last else size, size)
        told["Content-Range"] = f"bytes {start}-{end - 1}/{size}"
        return Answer(206, found.content[start:end], told)

    def _delete(self, body: bytes) -> Answer:
        root = ET.fromstring(body)
        names = [each.text or "" for each in root.iter() if each.tag.endswith("Key")]
        for name in names:
            self.objects.pop(name, None)
        deleted = "".join(f"<Deleted><Key>{escape(name)}</Key></Deleted>" for name in names)
        return Answer(200, f"<DeleteResult>{deleted}</DeleteResult>".encode())

    def _list(self, query: dict[str, list[str]]) -> Answer:
        prefix = query.get("prefix", [""])[0]
        after = query.get("start-after", [""])[0]
        most = int(query.get("max-keys", ["1000"])[0])
        token = query.get("continuation-token", [""])[0]
        after = max(after, token)
        names = sorted(each for each in self.objects if each.startswith(prefix) and each > after)
        page, more = names[:most], len(names) > most
        rows = "".join(
            f"<Contents><Key>{escape(name)}</Key><LastModified>{DATE}</LastModified>"
            f"<ETag>1</ETag><Size>{len(self.objects[name].content)}</Size></Contents>"
            for name in page
        )
        last = escape(page[-1]) if page else ""
        following = f"<NextContinuationToken>{last}</NextContinuationToken>"
        said = (
            f"<ListBucketResult><IsTruncated>{str(more).lower()}</IsTruncated>"
            f"{following if more else ''}{rows}</ListBucketResult>"
        )
        return Answer(200, said.encode(), {"Content-Type": "application/xml"})
