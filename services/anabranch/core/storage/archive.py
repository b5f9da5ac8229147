"""The journal's copy in the bucket: segments by the entries that they hold, and snapshots.

From a snapshot and the segments behind it the metadata are rebuilt when nothing else is left. Two
leaders may have copied the same entries: they are the same, so any segment that goes on where the
last one ended will do. The bytes are those of the file journal (docs/reference/journal-format.md).
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from anabranch.core.errors import JournalCorrupt
from anabranch.core.storage.journal import (
    FIRST_VERSION,
    group,
    read_header,
    scan,
    segment_header,
)

_SEGMENT = re.compile(r"(?P<first>[0-9]{20})-(?P<last>[0-9]{20})")


@dataclass(frozen=True, slots=True, order=True)
class Segment:
    """Which entries an object of the archive holds, as its name tells."""

    first: int
    last: int

    def __str__(self) -> str:
        assert 0 < self.first <= self.last, "an entry at least is held"
        return f"{self.first:020}-{self.last:020}"

    @staticmethod
    def parse(name: str) -> "Segment | None":
        found = _SEGMENT.fullmatch(name)
        return Segment(int(found["first"]), int(found["last"])) if found else None


def chain(segments: Iterable[Segment], after: int) -> list[Segment]:
    """Those that together hold every entry after one, as far as they go on without a gap."""
    assert after >= 0
    chosen: list[Segment] = []
    reached = after
    for segment in sorted(segments):
        if segment.first > reached + 1:
            # A longer one that begins earlier may come no more: they are in order of beginning.
            break
        if segment.last > reached:
            chosen.append(segment)
            reached = segment.last
    return chosen


def covered(segments: Iterable[Segment], index: int) -> list[Segment]:
    """Those that a snapshot of this entry makes needless."""
    return [segment for segment in segments if segment.last <= index]


def pack(cluster: str, first: int, entries: Sequence[bytes]) -> bytes:
    """One segment's bytes."""
    assert entries, "an entry at least is held"
    head = segment_header(0, first, 0, cluster, FIRST_VERSION)
    header = read_header(head, "", cluster)
    assert header is not None
    body, _ = group(header, header.mark, first, entries)
    return head + body


def unpack(content: bytes, path: str, cluster: str, segment: Segment) -> list[bytes]:
    """The entries; JournalCorrupt unless they are all there."""
    header = read_header(content, path, cluster)
    if header is None:
        raise JournalCorrupt(path, 0, "the header doesn't match its checksum")
    if header.extent != segment.first:
        raise JournalCorrupt(path, 0, f"it begins with entry {header.extent}, not as it is named")
    found = scan(content, path, header, segment.last)
    assert found.header is header
    return [entry for each in found.groups for entry in each.entries]
