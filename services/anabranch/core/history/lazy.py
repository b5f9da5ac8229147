"""What clients of a lazily ordered log saw, and whether it kept its promises (LazyLog, 3 and 4).

The rules are those of the paper's interface, and know nothing of views, rings and shards: G1 what
is acknowledged stays; G2 what was appended after an acknowledgement is behind what that was given
for; G3 a position that was read never changes; G4 a tail counts what was acknowledged before it was
asked for. E5, E7 and E9 follow from them: reads have what is stable, an append has its positions
once, and no-ops are nobody's records. Records are all different, which makes them cheap to check.

    history = LazyHistory()
    history.calls.append(LazyAppend(client=1, invoked=3, returned=9, verdict=Verdict.OK, ...))
    history.final = StableRead(...)  # of everything, when all is over
    assert judge_lazy(history) == []
"""

from collections.abc import Iterator

import msgspec

from anabranch.core.history.calls import RecordId, Verdict
from anabranch.core.history.family import Latest, Violation
from anabranch.core.types import NEVER, Position

NOOP: RecordId = -1
"""In place of a record: its append was never acknowledged, and its data didn't come."""


class LazyCall(msgspec.Struct, kw_only=True):
    """One call of one client. Times are any integers that only grow, the same for all clients."""

    client: int
    invoked: int
    returned: int = NEVER
    verdict: Verdict = Verdict.UNKNOWN

    @property
    def ok(self) -> bool:
        return self.verdict is Verdict.OK


class LazyAppend(LazyCall, tag="append"):
    """One batch, tried again until something was known of it. `OK`: acknowledged; `REFUSED`: it is
    never in the log.
    """

    records: list[RecordId]
    position: Position | None = None
    """The first record's, of an append that waits for it."""


class Redemption(LazyCall, tag="redemption"):
    """A receipt was redeemed: the append that begins with this record begins at this position."""

    record: RecordId
    position: Position = -1


class TailCheck(LazyCall, tag="tail"):
    """How many records are durable?"""

    tail: Position = 0


class StableRead(LazyCall, tag="read"):
    """Some positions from `start` up to and without `upto`, with what is there."""

    start: Position
    upto: Position
    positions: list[Position] = []
    records: list[RecordId] = []
    """For each position; `NOOP` where there is none."""
    whole: bool = True
    """What isn't shown is a no-op; otherwise it may be on a shard that wasn't read."""
    stable: Position | None = None
    """The stable position that came with the answer."""
    stream: str = ""
    """Answers of one subscription, in their order: each begins where the one before ended."""


class LazyTrim(LazyCall, tag="trim"):
    before: Position


AnyLazyCall = LazyAppend | Redemption | TailCheck | StableRead | LazyTrim


class LazyHistory(msgspec.Struct):
    calls: list[AnyLazyCall] = []
    final: StableRead | None = None
    """All that is left and readable, after everything acknowledged had the time to become stable;
    it begins where the log was trimmed. None: nothing is said of what became of appends.
    """
    lost: set[RecordId] = set()
    """Acknowledged from memory, and given up by the log for everybody to know."""


def judge_lazy(history: LazyHistory) -> list[Violation]:
    """Every rule that was broken; none means that a correct service could have shown all this."""
    book = _Book(history)
    return [
        *book.violations,
        *_appends(book),
        *_kept(book),
        *_in_real_time(book),
        *_reads(book),
        *_streams(book),
        *_tails(book),
        *_trims(book),
    ]


class _Book:
    """Everything that was said of positions, brought together."""

    def __init__(self, history: LazyHistory) -> None:
        self.history = history
        self.violations: list[Violation] = []
        self.appends = [call for call in history.calls if isinstance(call, LazyAppend)]
        self.reads = [call for call in history.calls if isinstance(call, StableRead) and call.ok]
        if history.final is not None:
            self.reads.append(history.final)
        self.sender: dict[RecordId, LazyAppend] = {}
        self.content: dict[Position, RecordId] = {}
        self.place: dict[RecordId, Position] = {}
        self.seen: list[tuple[int, Position]] = []
        """When a client knew that the log goes up to here."""
        for append in self.appends:
            for record in append.records:
                assert record not in self.sender, "records are all different"
                self.sender[record] = append
        for call in history.calls:
            self._note_placed(call)
        for read in self.reads:
            self._note_read(read)

    def _note_placed(self, call: AnyLazyCall) -> None:
        """An append with its position, or a receipt."""
        if isinstance(call, LazyAppend) and call.ok and call.position is not None:
            self._place(call, call.position, call.returned)
        elif isinstance(call, Redemption) and call.ok:
            append = self.sender.get(call.record)
            if append is None or append.records[0] != call.record:
                self._found("E7 receipt", f"no append begins with record {call.record}")
            else:
                self._place(append, call.position, call.returned)

    def _place(self, append: LazyAppend, position: Position, at: int) -> None:
        self.seen.append((at, position + len(append.records)))
        for number, record in enumerate(append.records):
            self._sight(position + number, record, "a receipt")

    def _note_read(self, read: StableRead) -> None:
        shown = dict(zip(read.positions, read.records, strict=True))
        if len(shown) < len(read.positions):
            self._found("E7 once", f"a read of client {read.client} shows a position twice")
        if read.upto > read.start:  # otherwise it says nothing of the log: it was asked beyond
            self.seen.append((read.returned, read.upto))
        for position, record in shown.items():
            self._sight(position, record, "a read")
        if read.whole:
            for position in range(read.start, read.upto):
                if position not in shown:
                    self._sight(position, NOOP, "a read")

    def _sight(self, position: Position, record: RecordId, by: str) -> None:
        known = self.content.setdefault(position, record)
        if known != record:
            rule = "E9 no-op" if NOOP in (known, record) else "G3 stability"
            self._found(rule, f"{by} has {_name(record)} at {position}, where {_name(known)} was")
        elif record != NOOP and self.place.setdefault(record, position) != position:
            says = f"{by} has {_name(record)} at {position}, and it was at {self.place[record]}"
            self._found("E7 once", says)

    def _found(self, rule: str, says: str) -> None:
        self.violations.append(Violation(rule, says))


def _name(record: RecordId) -> str:
    return "a no-op" if record == NOOP else f"record {record}"


def _appends(book: _Book) -> Iterator[Violation]:
    """What is in the log was appended, as a whole, and wasn't refused."""
    for record, position in book.place.items():
        append = book.sender.get(record)
        if append is None:
            yield Violation("E7 invented", f"{position} holds record {record}, which nobody sent")
        elif append.verdict is Verdict.REFUSED:
            yield Violation("E9 refused", f"{position} holds record {record}, which was refused")
    for append in book.appends:
        places = [book.place.get(record) for record in append.records]
        firsts = {at - number for number, at in enumerate(places) if at is not None}
        if len(firsts) > 1:
            yield Violation("E7 whole", f"the records of one append are at {places}")


def _kept(book: _Book) -> Iterator[Violation]:
    """G1: what was acknowledged is in the log. A record that nobody was shown may be below the
    trim, if there is room for it, and if it can be in front of what isn't trimmed.
    """
    final, lost = book.history.final, book.history.lost
    if final is None:
        return
    kept = set(final.records)
    ends = [
        (append.returned, book.place[append.records[0]])
        for append in book.appends
        if append.ok and append.records and append.records[0] in book.place
    ]
    before = Latest(ends)
    room = final.start - sum(position < final.start for position in book.content)
    for append in book.appends:
        if not append.ok or lost.intersection(append.records):
            continue
        for record in append.records:
            place = book.place.get(record)
            if record in kept or (place is not None and place < final.start):
                continue
            room -= 1
            behind = before.before(append.invoked)
            if place is not None or room < 0 or (behind or -1) >= final.start:
                says = f"record {record} was acknowledged, and isn't in the log"
                yield Violation("G1 durability", says)


def _in_real_time(book: _Book) -> Iterator[Violation]:
    """G2: from the end to the start, nothing may stand before what had been acknowledged when it
    was appended.
    """
    earliest, behind = NEVER, -1
    for record, _ in sorted(book.place.items(), key=lambda item: item[1], reverse=True):
        append = book.sender.get(record)
        if append is None:
            continue
        if earliest < append.invoked:
            says = f"record {record} is before record {behind}, which was acknowledged first"
            yield Violation("G2 real time", says)
        if append.ok and append.returned < earliest:
            earliest, behind = append.returned, record


def _reads(book: _Book) -> Iterator[Violation]:
    """E5: a read has what it was asked for, of what is stable, and nothing from the future."""
    end = book.history.final.upto if book.history.final is not None else None
    for read in book.reads:
        what = f"a read of client {read.client} from {read.start} to {read.upto}"
        if any(not read.start <= position < read.upto for position in read.positions):
            yield Violation("E5 range", f"{what} shows {read.positions}")
        stable = read.upto if read.stable is None else read.stable
        if not read.start <= read.upto <= max(read.start, stable):
            yield Violation("E5 stable", f"{what} was told that {read.stable} is stable")
        if end is not None and max(read.upto if read.positions else 0, read.stable or 0) > end:
            yield Violation("E5 future", f"{what} knows of more than {end}, where the log ends")
        for record in read.records:
            append = book.sender.get(record)
            if append is not None and append.invoked > read.returned:
                yield Violation("E5 future", f"{what} shows record {record} before it was sent")


def _streams(book: _Book) -> Iterator[Violation]:
    at: dict[str, Position] = {}
    for read in book.reads:
        if read.stream and at.setdefault(read.stream, read.start) != read.start:
            says = f"{read.stream} goes on at {read.start} where {at[read.stream]} was due"
            yield Violation("E5 stream", says)
        if read.stream:
            at[read.stream] = read.upto


def _tails(book: _Book) -> Iterator[Violation]:
    """G4, and that a tail counts nothing that nobody had appended."""
    lost = book.history.lost
    counted = _Sum(
        (append.returned, len(append.records))
        for append in book.appends
        if append.ok and not lost.intersection(append.records)
    )
    asked = _Sum((append.invoked, len(append.records)) for append in book.appends)
    seen = Latest(book.seen)
    for call in book.history.calls:
        if not isinstance(call, TailCheck) or not call.ok:
            continue
        low = max(counted.before(call.invoked), seen.before(call.invoked) or 0)
        if call.tail < low:
            says = f"the tail was {call.tail}, {low} records were acknowledged or seen by then"
            yield Violation("G4 tail", says)
        high = asked.before(call.returned + 1)
        if call.tail > high:
            says = f"the tail was {call.tail}, {high} records had been appended"
            yield Violation("E5 future", says)


def _trims(book: _Book) -> Iterator[Violation]:
    """D-E5: only what was asked for is trimmed, and from then on nobody is shown it."""
    trims = [call for call in book.history.calls if isinstance(call, LazyTrim)]
    done = Latest([(trim.returned, trim.before) for trim in trims if trim.ok])
    highest = max((trim.before for trim in trims if trim.verdict is not Verdict.REFUSED), default=0)
    final = book.history.final
    if final is not None and final.start > highest:
        says = f"the log begins at {final.start}, it was trimmed to {highest} at most"
        yield Violation("G1 durability", says)
    for read in book.reads:
        trimmed = done.before(read.invoked) or 0
        if read.positions and min(read.positions) < trimmed:
            says = f"a read shows {min(read.positions)} after a trim to {trimmed}"
            yield Violation("D-E5 trim", says)


class _Sum:
    """How many there were before some moment."""

    def __init__(self, amounts: Iterator[tuple[int, int]]) -> None:
        total = 0
        points: list[tuple[int, int]] = []
        for at, amount in sorted(amounts):
            total += amount
            points.append((at, total))
        self._latest = Latest(points)

    def before(self, time: int) -> int:
        return self._latest.before(time) or 0
