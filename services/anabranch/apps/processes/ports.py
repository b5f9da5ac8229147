"""Ports for servers that must be told one."""

import socket
from pathlib import Path

from anabranch.core.errors import Unavailable
from anabranch.shell.runtime.randomness import randbits

HOST = "127.0.0.1"
LOWEST = 10_000
_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")
_EPHEMERAL = 32_768
_ATTEMPTS = 1_000


def free_ports(count: int) -> list[int]:
    """Ports that nobody listens at now, and that the system gives to nobody unasked.

    So a server finds its port again after it was killed, whoever connects to whom meanwhile.
    """
    below = _first_ephemeral()
    found: dict[int, None] = {}
    for _ in range(_ATTEMPTS):
        port = LOWEST + randbits(32) % (below - LOWEST)
        if port not in found and is_free(port):
            found[port] = None
            if len(found) == count:
                return list(found)
    raise Unavailable("a free port", f"none was found from {LOWEST} up to {below}")


def _first_ephemeral() -> int:
    try:
        first = int(_RANGE.read_text(encoding="ascii").split()[0])
    except (OSError, ValueError):
        first = _EPHEMERAL
    return first if first > LOWEST + _ATTEMPTS else _EPHEMERAL


def is_free(port: int) -> bool:
    with socket.socket() as probe:
        # As servers do: a connection that lingers after its end is no obstacle.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True
