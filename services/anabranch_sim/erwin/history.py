"""What the clients of a run saw, in the words of the checker that knows nothing of the engine."""

from anabranch.core.erwin.invariants.account import Account, AppendCall, Outcome
from anabranch.core.erwin.protocol.messages import Delivered, Records
from anabranch.core.history.calls import RecordId, Verdict
from anabranch.core.history.lazy import (
    NOOP,
    AnyLazyCall,
    LazyAppend,
    LazyHistory,
    LazyTrim,
    Redemption,
    StableRead,
    TailCheck,
)
from anabranch.core.records.record import Record, decode
from anabranch.core.types import NEVER, Position

_RECORDS_MAX = 100
"""Of one append: its records have numbers of their own."""
_VERDICTS = {
    Outcome.OPEN: Verdict.UNKNOWN,
    Outcome.ACKNOWLEDGED: Verdict.OK,
    Outcome.REFUSED: Verdict.REFUSED,
}


def records_of(number: int, count: int) -> list[Record]:
    """The records of a run's append of this number; each says which one it is."""
    assert count <= _RECORDS_MAX
    return [Record(b"%d-%d" % (number, nth), b"k%d" % (nth % 4)) for nth in range(count)]


def record_id(value: bytes) -> RecordId:
    """Which record has this value."""
    number, nth = value.split(b"-")
    return int(number) * _RECORDS_MAX + int(nth)


class ReadLog:
    """All reads, deliveries and trims of a run. Times are its stamps."""

    def __init__(self) -> None:
        self.calls: list[AnyLazyCall] = []
        self._content: dict[bytes, list[RecordId]] = {}

    def read(
        self,
        *,
        start: Position,
        answer: Records | Delivered,
        invoked: int,
        returned: int,
        stream: str = "",
    ) -> None:
        """One shard's part of some positions."""
        positions: list[Position] = []
        records: list[RecordId] = []
        for first, count, batch in zip(answer.firsts, answer.counts, answer.batches, strict=True):
            ids = self._records(bytes(batch)) or [NOOP] * count
            for position, record in enumerate(ids, first):
                if start <= position < answer.upto:  # a batch may reach beyond what was asked for
                    positions.append(position)
                    records.append(record)
        read = StableRead(
            client=0,
            invoked=invoked,
            returned=returned,
            verdict=Verdict.OK,
            start=start,
            upto=answer.upto,
            positions=positions,
            records=records,
            whole=False,
            stable=answer.stable if isinstance(answer, Records) else None,
            stream=stream,
        )
        self.calls.append(read)

    def trim(self, before: Position, *, invoked: int, returned: int) -> None:
        """Returned at NEVER: nobody knows what became of it."""
        verdict = Verdict.OK if returned < NEVER else Verdict.UNKNOWN
        trim = LazyTrim(
            client=0, invoked=invoked, returned=returned, verdict=verdict, before=before
        )
        self.calls.append(trim)

    def final(self, *, start: Position, end: Position, since: int) -> StableRead:
        """All that readers found who began after this moment, between them."""
        content: dict[Position, RecordId] = {}
        for call in self.calls:
            if isinstance(call, StableRead) and call.returned > since:
                content.update(zip(call.positions, call.records, strict=True))
        positions = sorted(at for at in content if start <= at < end)
        return StableRead(
            client=0,
            invoked=since,
            verdict=Verdict.OK,
            start=start,
            upto=end,
            positions=positions,
            records=[content[at] for at in positions],
        )

    def _records(self, batch: bytes) -> list[RecordId]:
        if batch not in self._content:
            values = [record.value or b"" for record in decode(batch)] if batch else []
            self._content[batch] = [*map(record_id, values)]
        return self._content[batch]


def history_of(account: Account, log: ReadLog, final: StableRead, lost_view: int) -> LazyHistory:
    """`lost_view`: what was acknowledged in it or before may be gone, as everybody was told."""
    history = LazyHistory(list(log.calls), final)
    for number, each in enumerate(account.appends):
        append = _append(number, each)
        history.calls.append(append)
        if each.receipt is not None:
            redemption = Redemption(
                client=each.id.producer,
                invoked=each.returned,
                returned=each.redeemed,
                verdict=Verdict.OK,
                record=append.records[0],
                position=each.receipt,
            )
            history.calls.append(redemption)
        if append.ok and each.view <= lost_view and append.records[0] not in final.records:
            history.lost.update(append.records)
    for call in account.tails:
        check = TailCheck(
            client=0,
            invoked=call.invoked,
            returned=call.returned,
            verdict=Verdict.OK,
            tail=call.tail,
        )
        history.calls.append(check)
    return history


def _append(number: int, each: AppendCall) -> LazyAppend:
    return LazyAppend(
        client=each.id.producer,
        invoked=each.invoked,
        returned=each.returned or NEVER,
        verdict=_VERDICTS[each.outcome],
        records=[number * _RECORDS_MAX + nth for nth in range(each.count)],
    )
