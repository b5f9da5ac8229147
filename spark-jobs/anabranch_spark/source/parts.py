"""What a task of a scan is told: it can be sent anywhere, and holds no connection and no token."""

from collections.abc import Iterator, Sequence

import msgspec

from anabranch import Plan, PlannedSlice
from anabranch_spark.options import ReadOptions
from anabranch_spark.source.cuts import cut


class Part(msgspec.Struct, frozen=True):
    """A range of one log's positions, and the bytes that hold it."""

    log: str
    """As the reader named it."""
    plan: Plan
    """It keeps the bytes in the store until it ends."""
    index: int
    parts: int
    """Of the same plan."""
    slices: Sequence[PlannedSlice]
    lease: float
    """Seconds for which a task renews the plan at a time."""
    ends: bool
    """The task ends the plan when it has read everything: nobody else needs it."""

    @property
    def start(self) -> int:
        return self.slices[0].first

    @property
    def end(self) -> int:
        last = self.slices[-1]
        return last.first + last.count

    @property
    def name(self) -> str:
        """For messages."""
        nth = f"part {self.index + 1} of {self.parts}"
        return f"{self.log}[{self.start}..{self.end}), {nth}, plan {self.plan.id:016x}"


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Part).decode


def packed(part: Part) -> bytes:
    """The part as bytes: a fraction of what pickling each slice takes."""
    return _encode(part)


def unpacked(content: bytes) -> Part:
    """The part that `packed` made bytes of."""
    return _decode(content)


def parts_of(
    log: str, plan: Plan, slices: Sequence[PlannedSlice], options: ReadOptions, *, ends: bool
) -> Iterator[Part]:
    """The parts of one log's plan, in order. `ends`: the task of an only part ends the plan."""
    found = cut(slices, bytes_max=options.partition_bytes, parts_min=options.min_partitions)
    count = len(found)
    for index, each in enumerate(found):
        yield Part(log, plan, index, count, each, options.lease, ends and count == 1)
