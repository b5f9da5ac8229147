"""The server as a process of its own, and connections to it that block."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from time import monotonic
from typing import Any, NamedTuple

import msgspec

from anabranch.apps.up import Endpoint
from anabranch.core.belfast.protocol import codec as belfast_codec
from anabranch.core.belfast.protocol import messages as belfast
from anabranch.core.bolt.protocol import codec
from anabranch.core.bolt.protocol.commands import Description
from anabranch.core.bolt.protocol.messages import (
    ClientMessage,
    Hello,
    Read,
    Records,
    ServerMessage,
)
from anabranch.core.errors import BadFrame, Unavailable
from anabranch.core.errors.refused import Refused
from anabranch.core.erwin.protocol import codec as erwin_codec
from anabranch.core.erwin.protocol import messages as erwin
from anabranch.core.records.origins import deliveries
from anabranch.core.records.record import Record, decode, encode
from anabranch.core.sequencing.protocol import codec as sequencing_codec
from anabranch.core.sequencing.protocol import messages as sequencing
from anabranch.core.types import LogId

PATIENCE_S = 30.0
LOOK_S = 0.02


class Line:
    """One connection that blocks."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=20)
        self._frames = codec.replies()
        self._come: list[tuple[int, ServerMessage | BadFrame]] = []
        self._last = 0
        self.call(Hello(1, "test"))

    def say(self, message: ClientMessage) -> int:
        self._last += 1
        self._socket.sendall(b"".join(codec.encode_request(self._last, message)))
        return self._last

    def hear(self) -> tuple[int, ServerMessage | BadFrame]:
        while not self._come:
            content = self._socket.recv(1 << 16)
            if not content:
                raise ConnectionResetError
            self._come = self._frames.feed(content)
        return self._come.pop(0)

    def call(self, message: ClientMessage) -> ServerMessage | BadFrame:
        request = self.say(message)
        answered, reply = self.hear()
        assert answered == request
        return reply

    def close(self) -> None:
        self._socket.close()


class Process:
    """`anabranch up` on a directory, ready to be spoken to."""

    def __init__(self, data: Path, *flags: str) -> None:
        self._announced = data / "endpoint"
        self._announced.unlink(missing_ok=True)
        self.process = subprocess.Popen(
            [sys.executable, "-m", "anabranch.cli.main", "up", "--no-http", *flags],
            env={**os.environ, "ANABRANCH_DATA": str(data), "ANABRANCH_PORT": "0"},
            stderr=subprocess.PIPE,
            bufsize=0,  # what follows the line below stays in the pipe
        )
        self.said = ""
        """Its log from there on, when it has ended."""
        assert self.process.stderr is not None
        said = b""
        for line in self.process.stderr:
            said += line
            if b" serving " in line:
                break
        else:
            raise AssertionError(said.decode())
        endpoint = msgspec.json.decode(self._announced.read_bytes(), type=Endpoint)
        assert endpoint.pid == self.process.pid
        self.port = int(endpoint.frames.rpartition(":")[2])
        self._lines = list[Line | NodeLine]()

    def line(self) -> Line:
        """A connection to its Bolt; closed at its end."""
        self._lines.append(line := Line(self.port))
        return line

    def node(self, log: Description, node: str) -> "NodeLine":
        """A connection to one node of an embedded log; closed at its end."""
        dialect = BELFAST
        if log.engine == "erwin":
            dialect = SEQUENCING if node.startswith("sequencer") else ERWIN
        self._lines.append(line := NodeLine(self.port, log, node, dialect))
        return line

    def end(self, how: signal.Signals) -> int:
        """Its exit code; one that has ended already keeps its own."""
        for line in self._lines:
            line.close()
        self.process.send_signal(how)
        _, said = self.process.communicate(timeout=20)
        self.said = said.decode()
        return self.process.returncode


@contextmanager
def running(data: Path, *flags: str) -> Iterator[Process]:
    process = Process(data, *flags)
    try:
        yield process
    finally:
        process.end(signal.SIGKILL)


def batch(number: int, producer: int) -> bytes:
    record = Record(str(number).encode())
    return encode([record], producer_id=producer, producer_epoch=0, base_sequence=number, now=1)


def values(line: Line, log: LogId) -> list[int]:
    found: list[int] = []
    while True:
        reply = line.call(Read(log, len(found), 10_000, 1 << 20))
        assert isinstance(reply, Records)
        if not reply.batches:
            return found
        found += [int(record.value or b"") for *_, record in deliveries(reply.runs, reply.batches)]


class Dialect(NamedTuple):
    """What the nodes of one kind speak."""

    codec: Any
    messages: Any
    version: int


BELFAST = Dialect(belfast_codec, belfast, belfast.BELFAST_VERSION)
SEQUENCING = Dialect(sequencing_codec, sequencing, sequencing.SEQUENCING_VERSION)
ERWIN = Dialect(erwin_codec, erwin, erwin.ERWIN_VERSION)


class NodeLine:
    """A connection to one node of an embedded log, dialed again until the node is served or it is
    said why it isn't.
    """

    def __init__(self, port: int, log: Description, node: str, dialect: Dialect = BELFAST) -> None:
        assert log.settings is not None
        self._codec, messages, version = dialect
        hello = messages.Hello(version, log.settings.cluster, "test", node=f"/{log.id}/{node}")
        end = monotonic() + PATIENCE_S
        while True:
            self._socket = socket.create_connection(("127.0.0.1", port), timeout=20)
            self._frames = self._codec.replies()
            self._come: list[tuple[int, Any]] = []
            self._last = 0
            self._send(0, hello)
            _, answer = self.hear()
            if isinstance(answer, messages.Welcome):
                return
            self._socket.close()
            assert isinstance(answer, Refused), answer
            if answer.code != Unavailable.code:
                raise answer.error()
            assert monotonic() < end, answer
            Event().wait(LOOK_S)

    def say(self, message: Any) -> int:
        self._last += 1
        self._send(self._last, message)
        return self._last

    def hear(self) -> tuple[int, Any]:
        while not self._come:
            content = self._socket.recv(1 << 16)
            if not content:
                raise ConnectionResetError
            self._come = self._frames.feed(content)
        return self._come.pop(0)

    def call(self, message: Any) -> Any:
        request = self.say(message)
        answered, reply = self.hear()
        assert answered == request
        return reply

    def until(self, message: Any, enough: Callable[[Any], bool]) -> Any:
        """Ask again until the answer is as it is waited for."""
        end = monotonic() + PATIENCE_S
        while not enough(answer := self.call(message)):
            assert monotonic() < end, answer
            Event().wait(LOOK_S)
        return answer

    def close(self) -> None:
        self._socket.close()

    def _send(self, request: int, message: Any) -> None:
        self._socket.sendall(b"".join(self._codec.encode_request(request, message)))


def status_of(
    process: Process, log: Description, enough: Callable[[belfast.Status], bool] = lambda _: True
) -> belfast.Status:
    """What the leader says, once it is enough."""
    found = process.node(log, "sequencer-0").until(belfast.Inspect(), _is_known)
    if isinstance(found, belfast.Elsewhere):
        leader = process.node(log, found.node.rpartition("/")[2])
    else:
        leader = process.node(log, "sequencer-0")
    return leader.until(
        belfast.Inspect(), lambda answer: isinstance(answer, belfast.Status) and enough(answer)
    )


def shard_values(process: Process, log: Description, shard: int, replica: int = 0) -> list[int]:
    """Every confirmed record of a shard, in order, as its primary delivers them."""
    line = process.node(log, f"shard-{shard}-{replica}")
    line.say(belfast.Subscribe(f"shard-{shard}", 0))
    found: list[int] = []
    upto = 0
    status = status_of(process, log)
    while upto < status.confirmed:
        _, message = line.hear()
        match message:
            case belfast.Delivered():
                for batch in dict.fromkeys(message.batches):
                    found += [int(record.value or b"") for record in decode(batch)]
            case belfast.Confirmed():
                upto = message.upto
            case Refused(code="shard-away"):
                Event().wait(LOOK_S)
                line.say(belfast.Subscribe(f"shard-{shard}", 0))
            case _:
                assert not isinstance(message, Refused), message
    return found


def _is_known(answer: object) -> bool:
    """The status, or who leads."""
    elsewhere = isinstance(answer, belfast.Elsewhere) and answer.node
    return isinstance(answer, belfast.Status) or bool(elsewhere)
