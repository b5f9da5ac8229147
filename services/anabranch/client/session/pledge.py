"""A batch of appends, the numbers under which its producer sends it, and its outcome.

Every batch carries its producer's id, epoch and sequence, and a log takes them in that order, each
once (spec D4). So a batch that wasn't answered may be sent again under the same numbers.
"""

import struct
from typing import Generic, TypeVar

from anabranch.client.session.commons import RandomBits
from anabranch.core.alarms import Alarm
from anabranch.core.errors import AnabranchError
from anabranch.core.producers import REQUEST_EPOCH, SEQUENCE_SPACE
from anabranch.core.records.checksum import crc32c
from anabranch.core.records.codecs import Codec
from anabranch.core.records.record import Record, encode
from anabranch.core.types import Milliseconds

O = TypeVar("O")  # noqa: E741  # an outcome
"""What an engine acknowledges a batch with."""

_PRODUCER_BITS = 63
_EPOCH_MAX = REQUEST_EPOCH - 1
_PRODUCER = struct.Struct(">qhi")
_PRODUCER_AT = 43
_CRC = struct.Struct(">I")
_CRC_AT = 17
_SUMMED_FROM = 21


def stamp(batch: bytes, producer: int, epoch: int, sequence: int) -> bytes:
    """The same records with another place in a producer's order: only that and the checksum
    change.
    """
    stamped = bytearray(batch)
    _PRODUCER.pack_into(stamped, _PRODUCER_AT, producer, epoch, sequence)
    _CRC.pack_into(stamped, _CRC_AT, crc32c(memoryview(stamped)[_SUMMED_FROM:]))
    return bytes(stamped)


class Promise(Generic[O]):
    """The records of one batch, and what became of them: settled once it has an outcome."""

    __slots__ = (
        "alarm",
        "batch",
        "count",
        "doubts",
        "outcome",
        "records",
        "refusal",
        "sequence",
        "size",
        "timeout_ms",
        "waiters",
    )

    def __init__(self, timeout_ms: Milliseconds) -> None:
        self.timeout_ms = timeout_ms
        self.alarm: Alarm | None = None
        self.records: list[Record] = []
        self.count = self.size = 0
        self.batch = b""
        """What is sent; empty until it is encoded."""
        self.sequence = -1
        self.doubts = 0
        """How many times it was sent without learning what became of that try."""
        self.refusal: AnabranchError | None = None
        self.outcome: O | AnabranchError | None = None
        self.waiters: list[object] = []
        """The driver's own."""

    def add(self, record: Record, size: int) -> None:
        """One more record, which takes so many bytes."""
        assert self.sequence < 0, "a batch is closed when it is numbered"
        self.records.append(record)
        self.count += 1
        self.size += size


class Numbers:
    """A producer's identity, and the sequence of its next batch."""

    __slots__ = ("_epoch", "_fixed", "_id", "_next", "_randbits")

    def __init__(self, randbits: RandomBits, identity: int | None = None) -> None:
        """`identity`: of one request. Its batches always have that place and no other."""
        self._randbits = randbits
        self._fixed = identity is not None
        if identity is None:
            self._id, self._epoch = randbits(_PRODUCER_BITS), 0
        else:
            self._id, self._epoch = identity, REQUEST_EPOCH
        self._next = 0

    @property
    def identity(self) -> tuple[int, int]:
        """The producer's id and epoch, of the batch that was stamped last and of the next one."""
        return self._id, self._epoch

    def room_for(self, count: int) -> bool:
        """Could so many records more be stamped before sequences begin anew?"""
        return self._next + count < SEQUENCE_SPACE

    def stamp(self, pledge: Promise[O], codec: Codec, now_ms: Milliseconds) -> None:
        """Give it the next place in this producer's order."""
        pledge.sequence = self._next
        if not self._fixed:
            self._next = (self._next + pledge.count) % SEQUENCE_SPACE
        if pledge.batch:
            pledge.batch = stamp(pledge.batch, self._id, self._epoch, pledge.sequence)
            return
        pledge.batch = encode(
            pledge.records,
            codec,
            producer_id=self._id,
            producer_epoch=self._epoch,
            base_sequence=pledge.sequence,
            now=now_ms,
        )
        pledge.records = []

    def begin_epoch(self) -> None:
        """Count from 0 again: a log that has seen the new epoch takes no older batch."""
        self._next = 0
        if self._fixed:
            return
        self._epoch += 1
        if self._epoch > _EPOCH_MAX:
            self.begin_identity()

    def begin_identity(self) -> None:
        """Count from 0 as another producer: the log has forgotten this one."""
        self._next = 0
        if not self._fixed:
            self._id, self._epoch = self._randbits(_PRODUCER_BITS), 0
