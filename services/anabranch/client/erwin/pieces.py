"""Records of a shard as clients get them: batches with their first positions."""

from collections.abc import Sequence

from anabranch.client.session.records import LogRecord
from anabranch.core.errors import (
    BadFrame,
    BatchTooLarge,
    BatchUnreadable,
    TooManyHeaders,
)
from anabranch.core.records.record import decode
from anabranch.core.types import LogId, Position


class Piece:
    """Consecutive positions of one append, with their records; without any they are no-ops."""

    __slots__ = ("count", "credit", "first", "records", "shard")

    def __init__(
        self,
        shard: str,
        first: Position,
        count: int,
        records: Sequence[LogRecord],
        credit: int = 0,
    ) -> None:
        assert count > 0, "a piece has at least one position"
        assert len(records) in (0, count), "a batch is whole, or it is no-ops"
        self.shard, self.first, self.count = shard, first, count
        self.records = records
        self.credit = credit
        """Bytes that the shard may send once this is done with."""

    @property
    def end(self) -> Position:
        return self.first + self.count

    def since(self, start: Position) -> Sequence[LogRecord]:
        """Its records from this position on."""
        return self.records[max(0, start - self.first) :]


def piece(log: LogId, shard: str, first: Position, count: int, batch: bytes) -> Piece:
    """As a shard of this log sent it: verified and decoded. BatchUnreadable if that would cost too
    much.
    """
    if count <= 0:
        raise BadFrame(f"shard {shard} sent a batch of {count} records")
    if not batch:
        return Piece(shard, first, count, ())
    try:
        decoded = decode(batch)
    except (BatchTooLarge, TooManyHeaders) as error:
        name = f"(shard {shard})"
        raise BatchUnreadable(name, first, first + count, error.message) from None
    if len(decoded) != count:
        raise BadFrame(f"{count} records were named and {len(decoded)} came")
    records = [
        LogRecord(
            position,
            each.value,
            each.key,
            each.headers,
            each.timestamp,
            log,
            position,
            shard,
        )
        for position, each in enumerate(decoded, first)
    ]
    return Piece(shard, first, count, records, len(batch))
