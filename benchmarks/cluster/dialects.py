"""Appends as bytes of a connection: of our frames, and of Kafka's protocol, both made ready before.

Our own client costs as much as a broker, and Kafka's in Python more: what writes and hears bytes
like these is nearly nothing beside either.
"""

import struct
from collections.abc import Iterator
from typing import Protocol

from anabranch.client.session.pledge import stamp
from anabranch.core.bolt.protocol.codec import encode_request
from anabranch.core.bolt.protocol.messages import Append, Hello
from anabranch.core.types import LogId
from anabranch.core.wire.frames import HEADER
from benchmarks.load import plan_request

_APPENDED = struct.Struct(">IBBHIq")
_APPENDED_KIND = 4
_APPEND_BYTES = HEADER.size + 12

_KAFKA_HEAD = struct.Struct(">hhih")
_PRODUCE, _PRODUCE_VERSION = 0, 7
_ALL = -1
_PATIENCE_MS = 60_000
_I32 = struct.Struct(">i")
_PRODUCED = struct.Struct(">ihqqq")
"""Of one partition: number, error, first offset, time, start of the log."""


class Refused(Exception):
    """An append that should have been taken wasn't."""


class Dialect(Protocol):
    """One connection's."""

    def hello(self) -> bytes:
        """What is said before anything else, and answered; empty if nothing is."""
        ...

    def next(self) -> list[bytes]:
        """One append, to be written buffer by buffer."""
        ...

    def heard(self, data: bytes) -> int:
        """How many appends these bytes acknowledge, together with what came before."""
        ...


class Frames:
    """Ours: each batch with its producer's next number and the checksum over it."""

    def __init__(self, log: int, batch: bytes, records: int, producer: int) -> None:
        self._log = LogId(log)
        self._batch = batch
        self._records = records
        self._producer = producer
        self._sent = 0
        self._partial = b""

    def hello(self) -> bytes:
        return b"".join(encode_request(plan_request(0), Hello(1, "benchmark")))

    def next(self) -> list[bytes]:
        stamped = stamp(self._batch, self._producer, 0, self._sent * self._records)
        self._sent += 1
        return list(
            map(bytes, encode_request(plan_request(self._sent), Append(self._log, stamped)))
        )

    def heard(self, data: bytes) -> int:
        data = self._partial + data
        whole = len(data) - len(data) % _APPENDED.size
        self._partial = data[whole:]
        count = 0
        for _, kind, _, _, _, _ in _APPENDED.iter_unpack(data[:whole]):
            if kind != _APPENDED_KIND:
                raise Refused(repr(data))
            count += 1
        return count


class Produce:
    """Kafka's: acks=all, batches without a producer, as its clients send them unless they are asked
    to be idempotent; so nothing is remembered of them, and no checksum made anew.
    """

    def __init__(self, topic: str, batch: bytes) -> None:
        client, name = b"benchmark", topic.encode()
        head = _KAFKA_HEAD.pack(_PRODUCE, _PRODUCE_VERSION, 0, len(client)) + client
        body = struct.pack(">hhi", -1, _ALL, _PATIENCE_MS)
        body += struct.pack(">ih", 1, len(name)) + name
        body += struct.pack(">iii", 1, 0, len(batch)) + batch
        self._frame = _I32.pack(len(head) + len(body)) + head + body
        self._answer_at = _I32.size + 4 + 4 + 2 + len(name) + 4
        self._partial = b""

    def hello(self) -> bytes:
        return b""

    def next(self) -> list[bytes]:
        return [self._frame]

    def heard(self, data: bytes) -> int:
        data = self._partial + data
        count = at = 0
        for at, size in _frames(data):
            _, error, *_ = _PRODUCED.unpack_from(data, at - size + self._answer_at)
            if error:
                raise Refused(f"Kafka answered error {error}")
            count += 1
        self._partial = data[at:]
        return count


def _frames(data: bytes) -> Iterator[tuple[int, int]]:
    """Where each whole one ends, and its size with the length before it."""
    at = 0
    while len(data) - at >= _I32.size:
        size = _I32.size + _I32.unpack_from(data, at)[0]
        if len(data) - at < size:
            return
        at += size
        yield at, size
