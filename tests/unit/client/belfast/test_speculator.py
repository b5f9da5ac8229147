"""An application that speculates is, after whatever it was told, as one that waited."""

import asyncio
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anabranch.client.belfast.speculator import BatchSpeculator, Speculator
from anabranch.client.session.records import Confirm, Deliver, Event, Fail, LogRecord
from anabranch.core.errors import BadRequest, Overloaded
from anabranch.core.types import LogId


def deliver(position: int, value: int, *, speculative: bool = True) -> Deliver:
    record = LogRecord(position, b"%d" % value, None, (), 0, LogId(0), position, "a")
    return Deliver(record, speculative)


@st.composite
def tellings(draw: st.DrawFn) -> list[Event]:
    """Events as a subscription may tell them: in order, with rollbacks, until all is final."""
    events: list[Event] = []
    open_from, position = 0, 0
    for step in draw(st.lists(st.integers(0, 9), max_size=60)):
        if step < 6:
            events.append(deliver(position, draw(st.integers(0, 9))))
            position += 1 + step % 2
        elif step < 8 or open_from == position:
            open_from = draw(st.integers(open_from, position))
            events.append(Confirm(open_from))
        else:
            position = draw(st.integers(open_from, position - 1))
            events.append(Fail(position))
    return [*events, Confirm(position), deliver(position, 1, speculative=False)]


def standing(events: Sequence[Event]) -> tuple[list[int], list[int]]:
    """Values that were delivered and not failed; those of them that are final."""
    seen: list[tuple[int, int]] = []
    final = 0
    for event in events:
        match event:
            case Deliver(record, speculative):
                seen.append((record.position, int(record.value or b"")))
                final = final if speculative else record.position + 1
            case Confirm(up_to):
                final = up_to
            case Fail(since):
                seen = [each for each in seen if each[0] < since]
    return [v for _, v in seen], [v for p, v in seen if p < final]


class Folding:
    """Its state depends on the order of all that it has done."""

    def __init__(self) -> None:
        self.state = 0
        self.told: list[int] = []

    def do(self, record: LogRecord) -> int:
        before = self.state
        self.state = (self.state * 31 + int(record.value or b"")) % 1_000_003
        return before

    def undo(self, record: LogRecord, before: int) -> None:
        self.state = before

    def confirm(self, record: LogRecord, before: int) -> None:
        self.told.append(int(record.value or b""))

    def do_all(self, records: Sequence[LogRecord]) -> int:
        before = self.state
        for record in records:
            self.do(record)
        return before

    def undo_all(self, records: Sequence[LogRecord], before: int) -> None:
        self.state = before

    def confirm_all(self, records: Sequence[LogRecord], before: int) -> None:
        self.told += [int(record.value or b"") for record in records]


def fold(values: Sequence[int]) -> int:
    state = 0
    for value in values:
        state = (state * 31 + value) % 1_000_003
    return state


@settings(deadline=None)
@given(events=tellings(), portions=st.lists(st.integers(1, 7), min_size=1))
def test_after_any_events_the_state_is_that_of_what_stands(
    events: list[Event], portions: list[int]
) -> None:
    one, many = Folding(), Folding()
    by_record = Speculator(one.do, one.undo, one.confirm)
    by_batch = BatchSpeculator(many.do_all, many.undo_all, many.confirm_all, batch_max=3)
    told = 0
    while told < len(events):
        count = portions[told % len(portions)]
        portion = events[told : told + count]
        told += count
        for event in portion:
            by_record.take(event)
        by_batch.take(*portion)
        stands, final = standing(events[:told])
        assert one.state == many.state == fold(stands)
        assert one.told == final
        assert many.told == final[: len(many.told)], "a batch is told of as a whole"
    assert one.told == many.told == standing(events)[1]
    assert by_record.unconfirmed == by_batch.unconfirmed == 0


def test_what_is_done_and_not_confirmed_is_bounded() -> None:
    folding = Folding()
    speculator = Speculator(folding.do, folding.undo, unconfirmed_max=2)
    speculator.take(deliver(0, 1), deliver(1, 2))
    with pytest.raises(Overloaded):
        speculator.take(deliver(2, 3))
    speculator.take(Confirm(1))
    speculator.take(deliver(2, 3))
    assert folding.state == fold([1, 2, 3])


def test_an_error_of_the_application_ends_it() -> None:
    def do(record: LogRecord) -> None:
        raise OSError("no room for it")

    speculator = Speculator(do, lambda *_: None)
    with pytest.raises(OSError, match="no room"):
        speculator.take(deliver(0, 1))
    with pytest.raises(BadRequest, match="confirmed"):
        speculator.take(Confirm(0))


def test_it_follows_a_subscription_and_takes_no_more_than_it_may_hold() -> None:
    folding = Folding()
    speculator = Speculator(folding.do, folding.undo, folding.confirm, unconfirmed_max=2)
    asked: list[int] = []

    class Script:
        async def take(self, *, records_max: int) -> list[Event]:
            asked.append(records_max)
            events: list[list[Event]] = [
                [deliver(0, 1), deliver(1, 2)],
                [Fail(1)],
                [deliver(1, 3)],
                [Confirm(2)],
            ]
            if len(asked) > len(events):
                raise TimeoutError
            return events[len(asked) - 1]

    with pytest.raises(TimeoutError):
        asyncio.run(speculator.run(Script()))
    assert asked == [2, 0, 1, 0, 2]
    assert folding.told == [1, 3]
    assert speculator.rollbacks == 1
    assert speculator.confirmed == 2
