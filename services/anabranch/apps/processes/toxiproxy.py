"""A proxy that makes links slow, cuts and resets them: between any two parts, while they run."""

from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import msgspec

from anabranch.apps.processes.binaries import TOXIPROXY, find
from anabranch.apps.processes.ports import HOST, free_ports
from anabranch.apps.processes.servers import ATTEMPTS, ServerProcess, answers
from anabranch.core.errors import Unavailable

_ANSWER_S = 30.0


class Toxiproxy(ServerProcess):
    """The server; `link` makes a proxy in front of an address."""

    def __init__(self, folder: Path) -> None:
        self._port = 0
        super().__init__("toxiproxy", [], folder, self._serves)

    def start(self) -> None:
        for _ in range(ATTEMPTS):
            (self._port,) = free_ports(1)
            self._command = [find(TOXIPROXY), "-host", HOST, "-port", str(self._port)]
            try:
                super().start()
            except Unavailable:
                if not self.lost_its_port:
                    raise
            else:
                return
        raise Unavailable("the server toxiproxy", f"it lost its port {ATTEMPTS} times")

    def link(self, name: str, to: str) -> "Link":
        """`name` is of this server's choice of port; `to` is host:port."""
        wanted = {"name": name, "listen": f"{HOST}:0", "upstream": to, "enabled": True}
        return Link(self, name, self.ask("POST", "/proxies", wanted)["listen"])

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        connection = HTTPConnection(HOST, self._port, timeout=_ANSWER_S)
        try:
            sent = None if body is None else msgspec.json.encode(body)
            connection.request(method, path, sent, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            said = answer.read()
            assert answer.status < 300, (method, path, answer.status, said)
            return msgspec.json.decode(said) if said else None
        finally:
            connection.close()

    def _serves(self) -> bool:
        return answers(self._port, "/version") == 200


class Link:
    """What goes through `address` reaches the other side, or doesn't."""

    def __init__(self, server: Toxiproxy, name: str, address: str) -> None:
        self.address = address
        self._server = server
        self._path = f"/proxies/{name}"

    def cut(self) -> None:
        """Nothing listens and every connection is closed, until `mend`."""
        self._server.ask("POST", self._path, {"enabled": False})

    def mend(self) -> None:
        """As it was made: enabled, with none of what was `add`ed."""
        for toxic in self._server.ask("GET", f"{self._path}/toxics"):
            self._server.ask("DELETE", f"{self._path}/toxics/{toxic['name']}")
        self._server.ask("POST", self._path, {"enabled": True})

    def add(self, kind: str, stream: str = "downstream", **attributes: int) -> None:
        """One of toxiproxy's: latency (latency, jitter: ms), timeout (timeout: ms; 0 swallows all),
        bandwidth (rate: KB/s), slow_close, reset_peer (timeout), slicer, limit_data (bytes).
        """
        toxic = {"type": kind, "stream": stream, "attributes": attributes}
        self._server.ask("POST", f"{self._path}/toxics", toxic)

    def remove(self) -> None:
        self._server.ask("DELETE", self._path)
