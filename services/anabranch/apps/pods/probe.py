"""What watches a process asks over HTTP: does it live, is it ready and if not why, what does it
count.
"""

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

import msgspec

from anabranch.shell.telemetry.metrics import CONTENT_TYPE

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
_JSON = "application/json"


class Readiness(msgspec.Struct, frozen=True):
    """Ready if nothing stands in the way."""

    node: str
    role: str
    why: list[str]
    """What stands in the way, each as a sentence."""

    @property
    def ready(self) -> bool:
        return not self.why


class Probes:
    """An ASGI application; what it is asked, it asks the process."""

    def __init__(
        self,
        *,
        failed: Callable[[], str | None],
        readiness: Callable[[], Readiness],
        metrics: Callable[[], bytes],
    ) -> None:
        self._failed = failed
        self._readiness = readiness
        self._metrics = metrics

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await _live(receive, send)
            return
        assert scope["type"] == "http", "nothing else is served here"
        status, kind, body = self._answer(scope["method"], scope["path"])
        headers = [
            (b"content-type", kind.encode()),
            (b"content-length", b"%d" % len(body)),
            # Nobody who stays keeps another's probes out.
            (b"connection", b"close"),
        ]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        content = b"" if scope["method"] == "HEAD" else body
        await send({"type": "http.response.body", "body": content})

    def _answer(self, method: str, path: str) -> tuple[int, str, bytes]:
        if method not in {"GET", "HEAD"}:
            return 405, _JSON, _json({"why": ["only GET is served here"]})
        match path:
            case "/healthz":
                failure = self._failed()
                status = 503 if failure else 200
                return status, _JSON, _json({"live": not failure, "why": failure})
            case "/readyz":
                found = self._readiness()
                body = _json({"ready": found.ready, **msgspec.structs.asdict(found)})
                return (200 if found.ready else 503), _JSON, body
            case "/metrics":
                return 200, CONTENT_TYPE, self._metrics()
            case _:
                return 404, _JSON, _json({"why": ["here are /healthz, /readyz and /metrics"]})


def _json(content: dict[str, Any]) -> bytes:
    return msgspec.json.encode(content) + b"\n"


async def _live(receive: Receive, send: Send) -> None:
    """From the server's start to its end there is nothing to set up or take down."""
    while True:
        message = await receive()
        if message["type"] == "lifespan.startup":
            await send({"type": "lifespan.startup.complete"})
        else:
            await send({"type": "lifespan.shutdown.complete"})
            return
