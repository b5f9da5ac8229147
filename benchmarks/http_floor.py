"""What an HTTP server costs that appends nothing: `python -m benchmarks.http_floor asgi|fastapi`.

Both take the body and answer as an append is answered, so that what is between them is FastAPI's.
"""

import socket
import sys
from typing import Any

import uvicorn
from fastapi import FastAPI, Request

_ANSWER = b'{"position":123456}'


async def bare(scope: Any, receive: Any, send: Any) -> None:
    """An ASGI application without a framework."""
    if scope["type"] != "http":
        return
    more = True
    while more:
        more = (await receive()).get("more_body", False)
    length = str(len(_ANSWER)).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", length)]
    await send({"type": "http.response.start", "status": 201, "headers": headers})
    await send({"type": "http.response.body", "body": _ANSWER})


def framed() -> FastAPI:
    app = FastAPI()

    @app.post("/v1/logs/{log}/records", status_code=201)
    async def append(log: str, request: Request) -> dict[str, int]:
        await request.body()
        return {"position": 123_456}

    assert append is not None
    return app


def serve(kind: str) -> None:
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    print(listener.getsockname()[1], flush=True)
    app = bare if kind == "asgi" else framed()
    config = uvicorn.Config(
        app, loop="uvloop", http="httptools", lifespan="off", access_log=False, log_level="error"
    )
    uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    serve(sys.argv[1])
