"""How an export cuts a log: ranges of positions, one for each file or table commit.

Cuts depend on positions and stored bytes alone. A clock would cut differently when a run is
repeated, and the repeated run would write records again under another name.
"""

from collections.abc import Iterable, Iterator

import msgspec

from anabranch.errors import BadRequest

RECORDS = 1_000_000
"""Records of a range, unless it is asked for otherwise."""
RECORDS_MAX = 1_000_000_000
BYTES_MAX = 1 << 40
POSITION_MAX = 10**18


class Range(msgspec.Struct, frozen=True, order=True):
    """Positions from `start` up to, and without, `end`."""

    start: int
    end: int

    def __post_init__(self) -> None:
        if not 0 <= self.start < self.end <= POSITION_MAX:
            raise BadRequest("name a range of positions", f"[{self.start}..{self.end}) is none")

    def __str__(self) -> str:
        return f"[{self.start}..{self.end})"

    @property
    def records(self) -> int:
        """Positions of a log have no gaps."""
        return self.end - self.start


def by_records(start: int, end: int, records: int, *, full_only: bool = False) -> Iterator[Range]:
    """Cut at the multiples of `records`, so that runs which ended anywhere cut alike.

    The last range ends at `end`; with `full_only` it is left to a later run unless it is full.
    """
    checked_records(records)
    while start < end:
        after = (start // records + 1) * records
        if full_only and after > end:
            return
        yield Range(start, min(after, end))
        start = after


def by_bytes(
    start: int,
    end: int,
    slices: Iterable[tuple[int, int, int]],
    size: int,
    *,
    full_only: bool = False,
) -> Iterator[Range]:
    """Cut before a range has more than `size` stored bytes, never inside of a slice.

    Slices are (first position, records, bytes) in order of position, as a scan plan gives them.
    """
    checked_bytes(size)
    begun, held = start, 0
    for first, _, length in slices:
        if begun < first < end and held + length > size:
            yield Range(begun, first)
            begun, held = first, 0
        held += length
    if begun < end and not (full_only and held < size):
        yield Range(begun, end)


def checked_records(records: int) -> int:
    """BadRequest unless a range can have this many records."""
    if not 1 <= records <= RECORDS_MAX:
        raise BadRequest("cut an export", f"a range has 1 to {RECORDS_MAX} records, not {records}")
    return records


def checked_bytes(size: int) -> int:
    """BadRequest unless a range can have this many bytes."""
    if not 1 <= size <= BYTES_MAX:
        raise BadRequest("cut an export", f"a range has 1 to {BYTES_MAX} bytes, not {size}")
    return size
