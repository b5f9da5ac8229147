"""What a lazily ordered log may show its clients, and what it may not (LazyLog, 3 and 4)."""

from collections.abc import Callable
from itertools import pairwise
from random import Random

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch.core.history.calls import Verdict
from anabranch.core.history.lazy import (
    NOOP,
    AnyLazyCall,
    LazyAppend,
    LazyHistory,
    LazyTrim,
    Redemption,
    StableRead,
    TailCheck,
    judge_lazy,
)

OK = Verdict.OK


def append(*records: int, invoked: int, returned: int, at: int | None = None) -> LazyAppend:
    return LazyAppend(
        client=1,
        invoked=invoked,
        returned=returned,
        verdict=OK,
        records=list(records),
        position=at,
    )


def read(start: int, *records: int, invoked: int = 50, stable: int | None = None) -> StableRead:
    """A read of all positions, no-ops included."""
    end = start + len(records)
    return StableRead(
        client=2,
        invoked=invoked,
        returned=invoked + 1,
        verdict=OK,
        start=start,
        upto=end,
        positions=list(range(start, end)),
        records=list(records),
        stable=stable,
    )


def tail(value: int, *, invoked: int, returned: int | None = None) -> TailCheck:
    end = invoked if returned is None else returned
    return TailCheck(client=3, invoked=invoked, returned=end, verdict=OK, tail=value)


def receipt(record: int, position: int, *, invoked: int = 40) -> Redemption:
    return Redemption(
        client=1,
        invoked=invoked,
        returned=invoked,
        verdict=OK,
        record=record,
        position=position,
    )


def trim(before: int, *, invoked: int = 40) -> LazyTrim:
    return LazyTrim(client=4, invoked=invoked, returned=invoked, verdict=OK, before=before)


def history(*calls: AnyLazyCall) -> LazyHistory:
    """1 and 2 are acknowledged one after the other, 3 and 4 are one append beside them, 5 is
    unknown; the log holds a no-op too.
    """
    unknown = LazyAppend(client=5, invoked=3, records=[5])
    made = LazyHistory([append(1, invoked=1, returned=2), append(2, invoked=4, returned=9)])
    made.calls += [append(3, 4, invoked=1, returned=20), unknown, *calls]
    made.final = read(0, 1, 3, 4, NOOP, 2, invoked=99)
    return made


def rules(made: LazyHistory) -> set[str]:
    return {violation.rule for violation in judge_lazy(made)}


@pytest.mark.parametrize(
    "call",
    [
        read(1, 3, 4),
        read(4, 2, stable=5),
        receipt(2, 4),
        receipt(3, 1),
        tail(2, invoked=10),
        tail(1, invoked=3, returned=3),
        tail(0, invoked=2),
        tail(5, invoked=60),
        read(9, stable=5),
    ],
)
def test_what_a_correct_log_shows_is_right(call: AnyLazyCall) -> None:
    assert judge_lazy(history(call)) == []


@pytest.mark.parametrize(
    ("call", "rule"),
    [
        (read(1, 4), "G3 stability"),
        (read(0, 2), "E7 once"),
        (read(0, NOOP), "E9 no-op"),
        (read(3, 5), "E9 no-op"),
        (read(1, 3, invoked=-5), "E5 future"),
        (read(0, 1, stable=0), "E5 stable"),
        (read(5, 5), "E5 future"),
        (read(5, 77), "E7 invented"),
        (receipt(2, 0), "G3 stability"),
        (receipt(4, 2), "E7 receipt"),
        (tail(0, invoked=3), "G4 tail"),
        (tail(3, invoked=21), "G4 tail"),
        (tail(4, invoked=60), "G4 tail"),
        (tail(6, invoked=60), "E5 future"),
        (append(6, invoked=60, returned=61), "G1 durability"),
        (append(6, 7, invoked=60, returned=61, at=3), "E9 no-op"),
        (trim(5), "D-E5 trim"),
    ],
)
def test_what_it_must_not_show_is_seen(call: AnyLazyCall, rule: str) -> None:
    extra = [read(0, 1, 3, 4, NOOP, 2)] if isinstance(call, TailCheck) else []
    assert rule in rules(history(*extra, call))


def test_real_time_order_counts_across_clients() -> None:
    made = history()
    made.final = read(0, 2, 3, 4, 1, invoked=99)
    assert rules(made) == {"G2 real time"}


def test_an_append_is_in_the_log_as_a_whole() -> None:
    made = history()
    made.final = read(0, 1, 3, 2, 4, invoked=99)
    assert rules(made) == {"E7 whole"}


def test_what_was_refused_is_never_in_the_log() -> None:
    made = history(
        LazyAppend(client=1, invoked=30, returned=31, verdict=Verdict.REFUSED, records=[6])
    )
    assert judge_lazy(made) == []
    made.final = read(0, 1, 3, 4, NOOP, 2, 6, invoked=99)
    assert rules(made) == {"E9 refused"}


def test_what_a_log_gave_up_in_memory_is_no_loss_and_counts_in_no_tail() -> None:
    made = history(append(6, invoked=30, returned=31), tail(4, invoked=90))
    assert rules(made) == {"G1 durability", "G4 tail"}
    made = history(append(6, invoked=30, returned=31), tail(4, invoked=90))
    made.lost = {6}
    assert judge_lazy(made) == []


def test_what_is_trimmed_may_be_gone_and_nothing_else() -> None:
    made = history(trim(4, invoked=95))
    made.final = read(4, 2, invoked=99)
    assert judge_lazy(made) == []
    made.final = read(5, invoked=99)
    assert rules(made) == {"G1 durability"}
    made = history(trim(3, invoked=95), append(6, invoked=60, returned=61))
    made.final = read(3, NOOP, 2, invoked=99)
    assert rules(made) == {"G1 durability"}, "6 was appended when 2 was acknowledged"


def test_a_subscription_has_no_holes() -> None:
    first = msgspec.structs.replace(read(0, 1, invoked=60), stream="s")
    behind = msgspec.structs.replace(read(2, 4, invoked=60), stream="s")
    assert rules(history(first, behind)) == {"E5 stream"}


def test_positions_of_other_shards_are_nothing_that_a_read_says() -> None:
    partly = msgspec.structs.replace(read(0, 1, invoked=60), upto=3)
    assert rules(history(partly)) == {"E9 no-op"}
    assert judge_lazy(history(msgspec.structs.replace(partly, whole=False))) == []


# Any history of a correct log is right, and one that is broken anywhere is not.


class Served:
    """A log that takes its calls one after the other, at a moment within each call."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self.now = 0
        self.log: list[int] = []
        self.history = LazyHistory()
        self.next = 0

    def times(self) -> tuple[int, int]:
        """Around now; calls overlap their neighbours."""
        self.now += 10
        return self.now - self.rng.randint(0, 25), self.now + self.rng.randint(0, 25)

    def append(self) -> None:
        invoked, returned = self.times()
        records = list(range(self.next, self.next + self.rng.randint(1, 3)))
        self.next += len(records)
        verdict = self.rng.choice([OK, OK, OK, Verdict.UNKNOWN])
        at = len(self.log) if verdict is OK and self.rng.random() < 0.3 else None
        bound = verdict is OK or self.rng.random() < 0.7
        taken = verdict is OK or self.rng.random() < 0.5
        if bound:
            self.log += records if taken else [NOOP] * len(records)
        call = LazyAppend(
            client=1,
            invoked=invoked,
            returned=returned,
            verdict=verdict,
            records=records,
            position=at,
        )
        self.history.calls.append(call)

    def ask(self) -> None:
        invoked, returned = self.times()
        if self.rng.random() < 0.5:
            self.history.calls.append(tail(len(self.log), invoked=invoked, returned=returned))
            return
        start = self.rng.randint(0, len(self.log))
        upto = self.rng.randint(start, len(self.log))
        call = read(start, *self.log[start:upto], stable=upto)
        call.invoked, call.returned = invoked, returned
        self.history.calls.append(call)

    def served(self, steps: int) -> LazyHistory:
        for _ in range(steps):
            self.rng.choice([self.append, self.ask])()
        self.history.final = read(0, *self.log, invoked=self.now + 100)
        return self.history


@given(st.randoms(use_true_random=False), st.integers(0, 40))
def test_any_history_of_a_correct_log_is_right(rng: Random, steps: int) -> None:
    assert judge_lazy(Served(rng).served(steps)) == []


def _lose(made: LazyHistory, rng: Random) -> bool:
    assert made.final is not None
    kept = [call for call in made.calls if isinstance(call, LazyAppend) and call.ok]
    if not kept:
        return False
    gone = set(rng.choice(kept).records)
    made.final.records = [NOOP if each in gone else each for each in made.final.records]
    return True


def _swap(made: LazyHistory, rng: Random) -> bool:
    """Two appends that didn't overlap change places."""
    assert made.final is not None
    singles = [
        call
        for call in made.calls
        if isinstance(call, LazyAppend) and call.ok and len(call.records) == 1
    ]
    apart = [(a, b) for a, b in pairwise(singles) if a.returned < b.invoked]
    if not apart:
        return False
    first, second = rng.choice(apart)
    swapped = {first.records[0]: second.records[0], second.records[0]: first.records[0]}
    made.final.records = [swapped.get(each, each) for each in made.final.records]
    return True


def _shorten(made: LazyHistory, rng: Random) -> bool:
    """A tail leaves out an acknowledged append."""
    late = [call for call in made.calls if isinstance(call, LazyAppend) and call.ok]
    if not late:
        return False
    counted = sum(len(call.records) for call in late)
    at = max(call.returned for call in late) + 1
    made.calls.append(tail(counted - 1, invoked=at))
    return True


@pytest.mark.parametrize("spoil", [_lose, _swap, _shorten])
def test_a_history_that_is_broken_anywhere_is_not(
    spoil: Callable[[LazyHistory, Random], bool],
) -> None:
    @given(st.randoms(use_true_random=False), st.integers(10, 40))
    def trial(rng: Random, steps: int) -> None:
        made = Served(rng).served(steps)
        if spoil(made, rng):
            assert judge_lazy(made) != []

    trial()
