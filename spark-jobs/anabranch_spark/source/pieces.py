"""The bytes of a slice in pieces that are decoded one after the other.

Whoever may append to a log may fill a slice with batches that are small and become large: a
kilobyte of zstd holds 16 MiB, and a slice thousands of such kilobytes. So a compressed batch is a
piece of its own, and what a task holds at a time is bounded by what one batch may become.
"""

from collections.abc import Iterator

from msgspec.structs import replace

from anabranch.core.records.batch import split
from anabranch.errors import CorruptBatch
from anabranch_spark.source.decode import Span
from anabranch_spark.source.decoders.batches import Buffer

PLAIN_BYTES_MAX = 1 << 20
"""Of batches that aren't compressed and make up one piece, unless it is one: records take some ten
times as much as objects.
"""


def pieces(span: Span, content: Buffer) -> Iterator[tuple[Span, memoryview]]:
    """Bytes in order, each with what is meant of them. Where nothing is meant, the span is empty:
    these bytes are to be verified too, because their counts place what follows.

    CorruptBatch if headers don't fill the bytes, or count fewer records than are meant. A count is
    believed here only until its piece is decoded, so that has to be done before the next is taken.
    """
    view = memoryview(content)
    where = f"at {span.origin_first} of log {span.origin}"
    passed = held = start = stop = 0
    for offset, length, header in split(view, where):
        compressed = bool(header.attributes)
        if start < stop and (compressed or offset + length - start > PLAIN_BYTES_MAX):
            yield _part(span, passed, held), view[start:stop]
            passed, held, start = passed + held, 0, offset
        held, stop = held + header.count, offset + length
        if compressed:
            yield _part(span, passed, held), view[start:stop]
            passed, held, start = passed + held, 0, stop
    if start < stop:
        yield _part(span, passed, held), view[start:stop]
    passed, named = passed + held, span.skip + span.count
    if passed < named:
        raise CorruptBatch(f"{named} records were named and {passed} came", where)


def _part(span: Span, passed: int, held: int) -> Span:
    """What is meant of so many records that as many others precede."""
    low, high = max(span.skip - passed, 0), min(span.skip + span.count - passed, held)
    if low >= high:
        return replace(span, count=0, skip=0)
    ahead = passed + low - span.skip
    return replace(
        span,
        first=span.first + ahead,
        count=high - low,
        skip=low,
        origin_first=span.origin_first + ahead,
    )
