"""Set sums where batches have no bytes: each has the checksum that its first place makes."""

from msgspec.structs import replace

from anabranch.core.bolt.protocol.commands import CommitObject
from anabranch.core.records.set_sum import UNKNOWN, batch_value


def value_at(object: int, offset: int) -> int:
    """What the batch that was written there first adds to a set sum."""
    return batch_value((object * 2_654_435_761 + offset * 40_503) % (1 << 32))


def without_sums(commit: CommitObject) -> CommitObject:
    """As a broker of an earlier version says it."""
    return replace(commit, rows=[replace(row, sum=UNKNOWN) for row in commit.rows], values=b"")
