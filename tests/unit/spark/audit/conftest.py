"""Batches, and slices of them."""

from collections.abc import Callable

import pytest

from anabranch import PlannedSlice, Record
from anabranch.core.records.record import encode
from anabranch.core.types import LogId, ObjectId

Batch = Callable[..., bytes]
Piece = Callable[..., PlannedSlice]


def _batch(*values: bytes) -> bytes:
    records = [Record(value) for value in values]
    return bytes(encode(records, producer_id=-1, producer_epoch=-1, base_sequence=-1, now=1))


def _piece(
    first: int, count: int, *, object: int = 1, offset: int = 0, length: int = 100, skip: int = 0
) -> PlannedSlice:
    return PlannedSlice(first, count, ObjectId(object), offset, length, skip, LogId(1), first, 0)


@pytest.fixture(scope="session")
def batch() -> Batch:
    """Encodes values as one batch."""
    return _batch


@pytest.fixture(scope="session")
def piece() -> Piece:
    """Makes a slice of a plan."""
    return _piece
