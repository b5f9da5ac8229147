"""TLS between two who go by what Secrets hold, without a socket."""

import ssl
from base64 import b64decode
from pathlib import Path
from typing import Any


def files(folder: Path, secret: dict[str, Any]) -> Path:
    """A Secret as it is mounted."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, value in secret["data"].items():
        (folder / name).write_bytes(b64decode(value))
    return folder


def shake_hands(listener: Path, dialer: Path, name: str) -> None:
    """Either shows its own and checks the other's; raises SSLError."""
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    for context, mine in ((server, listener), (client, dialer)):
        context.load_cert_chain(mine / "tls.crt", mine / "tls.key")
        context.load_verify_locations(mine / "ca.crt")
        context.verify_mode = ssl.CERT_REQUIRED
    up, down = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = [
        client.wrap_bio(down, up, server_hostname=name),
        server.wrap_bio(up, down, server_side=True),
    ]
    waiting = list(ends)
    for _ in range(20):
        for end in tuple(waiting):
            try:
                end.do_handshake()
            except ssl.SSLWantReadError:
                continue
            waiting.remove(end)
        if not waiting:
            return
    raise AssertionError("neither has anything more to say")
