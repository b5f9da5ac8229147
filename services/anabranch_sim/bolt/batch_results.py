"""Results of rows batch by batch, and ranges position by position."""

from anabranch.core.bolt.protocol.commands import Receipt, Row, Sequenced
from anabranch.core.errors.refused import Refused


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
