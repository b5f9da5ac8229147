"""Results of rows batch by batch, ranges position by position, and set sums of batches that have no
bytes: each has the checksum that its first place makes.
"""

from msgspec.structs import replace

from anabranch.core.bolt.protocol.commands import CommitObject, Receipt, Row, Sequenced
from anabranch.core.errors.refused import Refused
from anabranch.core.records.set_sum import UNKNOWN, batch_value


def positions_of(ranges: list[tuple[int, int]]) -> list[int]:
    return [at for first, end in ranges for at in range(first, end)]


def by_batch(row: Row, result: int | Receipt | Sequenced | Refused) -> list[object]:
    before = [sum(batch.count for batch in row.batches[:i]) for i in range(len(row.batches))]
    match result:
        case Sequenced(batches):
            return list(batches)
        case Refused():
            return [result for _ in row.batches]
        case int():
            return [result + count for count in before]
        case Receipt(log, generation, provisional):
            return [Receipt(log, generation, provisional + count) for count in before]


def value_at(object: int, offset: int) -> int:
    """What the batch that was written there first adds to a set sum."""
    return batch_value((object * 2_654_435_761 + offset * 40_503) % (1 << 32))


def without_sums(commit: CommitObject) -> CommitObject:
    """As a broker of an earlier version says it."""
    return replace(commit, rows=[replace(row, sum=UNKNOWN) for row in commit.rows], values=b"")
