"""A client of the gateway: it appends by HTTP, numbers what it sends, and asks until it knows."""

import json
import secrets
from base64 import b64encode
from http.client import HTTPConnection, HTTPException
from threading import Event, Thread
from typing import Any

from tests.integration.kill.account import Account, made

from anabranch.apps.processes.ports import HOST
from anabranch.core.bolt.protocol.commands import Receipt
from anabranch.core.history.calls import UNTOLD, Append, Create
from anabranch.core.types import LogId

ANSWER_S = 60.0
AGAIN_S = 0.05
GONE = {"squashed", "unknown-log"}


class WebClient(Thread):
    """A log of its own, and in it its records: each once and in order, whoever dies meanwhile."""

    def __init__(self, port: int, number: int) -> None:
        super().__init__(name=f"web-{number}")
        self.account = Account(number)
        self.acknowledged = 0
        self._port = port
        self._stop_it = Event()
        self._producer = secrets.randbits(60)
        self._sent = 0

    def run(self) -> None:
        log = self._create()
        while not self._stop_it.is_set() and self._append(log):
            pass

    def stop(self) -> None:
        self._stop_it.set()

    def _create(self) -> LogId:
        call = Create(client=self.account.number, log=UNTOLD, invoked=0, name=self.name)
        self.account.begin(call)
        told = self._ask("/v1/logs", {"name": self.name}, **{"Idempotency-Key": self.name})
        call.log = LogId(told["id"])
        self.account.succeeded(call)
        return call.log

    def _append(self, log: LogId) -> bool:
        """Whether it may go on."""
        (number,) = self.account.numbers(1)
        call = Append(client=self.account.number, log=log, invoked=0, records=[number])
        self.account.begin(call)
        numbered = {"Producer-Id": str(self._producer), "Producer-Sequence": str(self._sent)}
        told = self._ask(f"/v1/logs/{self.name}/records", {"records": [_json(number)]}, **numbered)
        if not told:
            return False
        self._sent += 1
        call.position = told["position"]
        if told["receipt"] is not None:
            self.account.receipts.append((Receipt.parse(told["receipt"]), call.records))
        self.account.succeeded(call)
        self.acknowledged += 1
        return True

    def _ask(self, path: str, body: Any, **headers: str) -> dict[str, Any]:
        """The same request until it is granted; nothing, if it never will be or nobody waits."""
        content = json.dumps(body).encode()
        told = headers | {"Content-Type": "application/json", "Deadline-Ms": "20000"}
        while not self._stop_it.is_set():
            connection = HTTPConnection(HOST, self._port, timeout=ANSWER_S)
            try:
                connection.request("POST", path, content, told)
                answer = connection.getresponse()
                said = json.loads(answer.read())
            except (OSError, HTTPException):
                self._stop_it.wait(AGAIN_S)
                continue
            finally:
                connection.close()
            if answer.status < 300:
                return said
            if said["advice"] not in {"retry", "refresh"} or said["code"] in GONE:
                if said["code"] not in GONE:
                    self.account.faults.append(f"{self.name} was refused: {said}")
                break
        return {}


def _json(number: int) -> dict[str, Any]:
    record = made(number)
    return {
        "value": _text(record.value),
        "key": _text(record.key),
        "headers": [{"name": name, "value": _text(value)} for name, value in record.headers],
        "encoding": "base64",
    }


def _text(content: bytes | None) -> str | None:
    return None if content is None else b64encode(content).decode()
