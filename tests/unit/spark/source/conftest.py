"""Slices with their bytes, as a store has them."""

from collections.abc import Callable, Sequence

import pytest

from anabranch import Codec, PlannedSlice, Record
from anabranch.core.records.record import encode
from anabranch.core.types import LogId, ObjectId

Stored = tuple[PlannedSlice, bytes]


@pytest.fixture(scope="session")
def stored() -> Callable[..., Stored]:
    """Batches of records as one slice of which some records are meant."""

    def make(
        batches: Sequence[Sequence[Record]],
        *,
        codec: Codec = Codec.NONE,
        skip: int = 0,
        count: int | None = None,
        first: int = 100,
    ) -> Stored:
        content = b"".join(encode(batch, codec, now=1_000) for batch in batches)
        total = sum(map(len, batches))
        meant = total - skip if count is None else count
        made = PlannedSlice(
            first, meant, ObjectId(7), 0, len(content), skip, LogId(3), 40 + skip, 0
        )
        return made, content

    return make
