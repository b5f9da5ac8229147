"""The cache of extents holds what it may, whatever the extents are made of."""

from __future__ import annotations

import tracemalloc

import pytest

from anabranch.core.bolt.cache import Extent, ExtentCache
from anabranch.core.types import ObjectId

BYTES_MAX = 1 << 20


def extent(batches: int, size: int) -> Extent:
    """As it comes from the store: batches are views of one buffer."""
    content = memoryview(bytes(batches * size))
    views = [content[at : at + size] for at in range(0, batches * size, size)]
    return Extent(views, list(range(1_000, 1_000 + batches)), len(content))


@pytest.mark.parametrize(("batches", "size"), [(1, 100), (64, 100), (1_000, 70), (1, 100_000)])
def test_the_cache_takes_no_more_memory_than_it_is_given(batches: int, size: int) -> None:
    cache = ExtentCache(BYTES_MAX)
    extents = 3 * BYTES_MAX // (batches * size)
    tracemalloc.start()
    for turn in range(extents):
        cache.put((ObjectId(turn), 0, batches * size), extent(batches, size))
    taken, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert BYTES_MAX // 2 < cache.bytes <= BYTES_MAX
    assert taken <= 1.25 * BYTES_MAX
