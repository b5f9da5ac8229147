"""The compiled codec of records inside a batch, and the one place that loads it, on first use.

Its package takes some 60 ms to import, which a program that only looks around shouldn't pay.
"""

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Protocol

from anabranch.core.machine import Buffer

if TYPE_CHECKING:
    from aiokafka.record._crecords.default_records import (
        DefaultRecordBatch,
        DefaultRecordBatchBuilder,
    )

MAGIC = 2
_NO_LIMIT = (1 << 62) - 1
_PADDING = bytes(16)
"""The compiled reader looks at a varint before it looks at the end: up to ten bytes too far."""


class Content(Protocol):
    """What a record carries, read or yet to be written."""

    @property
    def key(self) -> bytes | None: ...
    @property
    def value(self) -> bytes | None: ...
    @property
    def headers(self) -> Sequence[tuple[str, bytes | None]]: ...


class Decoded(Content, Protocol):
    """A record that was read."""

    @property
    def timestamp(self) -> int: ...


def content_bytes(record: Content) -> int:
    """What `record_bytes_max` bounds: key, value and headers, without their framing."""
    size = len(record.key or b"") + len(record.value or b"")
    for name, value in record.headers:
        size += len(name.encode()) + len(value or b"")
    return size


def builder(producer_id: int, epoch: int, base_sequence: int) -> "DefaultRecordBatchBuilder":
    """Of one uncompressed batch of any size."""
    return _builder()(MAGIC, 0, 0, producer_id, epoch, base_sequence, _NO_LIMIT)


def parse(head: Buffer, rest: Buffer) -> "DefaultRecordBatch":
    """An iterable of the records of the uncompressed batch in two parts; it raises `faults()`."""
    padded = memoryview(b"".join((head, rest, _PADDING)))
    return _reader()(padded[: -len(_PADDING)])  # pyright: ignore[reportArgumentType]


@cache
def faults() -> tuple[type[Exception], ...]:
    """What the compiled reader raises on records that aren't well formed.

    A length close to 2^63 wraps around its bounds check, and then fails to be allocated.
    """
    from aiokafka import errors  # pyright: ignore[reportMissingTypeStubs]

    return (errors.CorruptRecordException, OverflowError, MemoryError, UnicodeDecodeError)


@cache
def _builder() -> "type[DefaultRecordBatchBuilder]":
    from aiokafka.record._crecords.default_records import DefaultRecordBatchBuilder

    return DefaultRecordBatchBuilder


@cache
def _reader() -> "type[DefaultRecordBatch]":
    from aiokafka.record._crecords.default_records import DefaultRecordBatch

    return DefaultRecordBatch
