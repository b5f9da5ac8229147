"""A collector of traces: takes OTLP over HTTP as JSON, and tells what it got."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Condition, Thread
from typing import Any

PATIENCE_S = 60.0


class Collector:
    def __init__(self, address: str) -> None:
        self.endpoint = f"http://{address}"
        self.paths: set[str] = set()
        self._spans: list[dict[str, Any]] = []
        self._came = Condition()

    @staticmethod
    @contextmanager
    def listening() -> Iterator["Collector"]:
        server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
        server.daemon_threads = True
        collector = _Handler.collectors[server] = Collector(f"127.0.0.1:{server.server_port}")
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield collector
        finally:
            server.shutdown()
            thread.join()
            server.server_close()
            del _Handler.collectors[server]

    def take(self, path: str, document: dict[str, Any]) -> None:
        with self._came:
            self.paths.add(path)
            for group in document["resourceSpans"]:
                told = {each["key"]: each["value"] for each in group["resource"]["attributes"]}
                for scope in group["scopeSpans"]:
                    service = told["service.name"]["stringValue"]
                    self._spans += ({**span, "service": service} for span in scope["spans"])
            self._came.notify_all()

    def until(self, *names: str, trace: int | None = None) -> list[dict[str, Any]]:
        """All spans, or those of this trace, once there is one of each of these names."""

        def found() -> list[dict[str, Any]]:
            wanted = None if trace is None else f"{trace:032x}"
            return [span for span in self._spans if wanted in {None, span["traceId"]}]

        with self._came:
            self._came.wait_for(
                lambda: set(names) <= {span["name"] for span in found()}, PATIENCE_S
            )
            spans = found()
        assert set(names) <= {span["name"] for span in spans}
        return spans


class _Handler(BaseHTTPRequestHandler):
    collectors: dict[Any, Collector] = {}  # noqa: RUF012 - one for each server of this process

    def do_POST(self) -> None:
        content = self.rfile.read(int(self.headers["Content-Length"]))
        self.collectors[self.server].take(self.path, json.loads(content))
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - as it is inherited
        """Nobody wants to know."""
