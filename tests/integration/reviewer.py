"""What an API server is when it isn't well: it reviews what it is told to, and fails as it is told.

A real one is asked in tests/operator; this one does what a real one can't be made to do.
"""

import json
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from tests.certificates import certified

from anabranch.shell.authority.kubernetes import TOKENS
from anabranch.shell.net.tls import TlsSettings, listening

SERVER_TOKEN = "this process's own"
NAMESPACE = "home"


class Reviewer:
    """Lets everybody in by the name that their token is, and to everything, while it is well."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "account"
        self.folder.mkdir()
        files = certified(folder / "reviewer")
        (self.folder / "token").write_text(SERVER_TOKEN + "\n")
        (self.folder / "namespace").write_text(NAMESPACE)
        (self.folder / "ca.crt").write_bytes(Path(files.ca).read_bytes())
        self.takes = f"Bearer {SERVER_TOKEN}"
        self.status = 201
        self.garbled = False
        self.hangs_up = False
        self.silent = threading.Event()
        self.came = threading.Event()
        self.goes_on = threading.Event()
        self.goes_on.set()
        self.over: set[str] = set()
        """Tokens that aren't anybody's any more."""
        self.asked: list[dict[str, Any]] = []
        self._tls = TlsSettings(cert=files.cert, key=files.key)
        self.url = ""

    @contextmanager
    def serving(self) -> Iterator["Reviewer"]:
        reviewer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                reviewer._answer(self, json.loads(body))

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - as it is called
                return

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        server.daemon_threads = True
        context = listening(self._tls)
        assert isinstance(context, ssl.SSLContext)
        server.socket = context.wrap_socket(server.socket, server_side=True)
        self.url = f"https://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield self
        finally:
            self.silent.set()
            server.shutdown()
            server.server_close()
            thread.join()

    def _answer(self, handler: BaseHTTPRequestHandler, review: dict[str, Any]) -> None:
        self.asked.append(review)
        self.came.set()
        self.goes_on.wait()
        if self.silent.is_set():
            return
        status = 401 if handler.headers["Authorization"] != self.takes else self.status
        content = (
            b"{" if self.garbled else json.dumps(self._reviewed(handler.path, review)).encode()
        )
        handler.send_response(status)
        handler.send_header("Content-Length", str(len(content)))
        handler.end_headers()
        handler.wfile.write(content)
        handler.close_connection = self.hangs_up

    def _reviewed(self, path: str, review: dict[str, Any]) -> dict[str, Any]:
        if path != TOKENS:
            return {**review, "status": {"allowed": True}}
        spec = review["spec"]
        if spec["token"] in self.over:
            return {**review, "status": {"authenticated": False, "error": "it is over"}}
        user = {"username": spec["token"], "groups": ["people"]}
        status = {"authenticated": True, "user": user, "audiences": spec["audiences"]}
        return {**review, "status": status}
