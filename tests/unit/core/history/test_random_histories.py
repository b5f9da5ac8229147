"""The checker accepts what a correct service may show, and finds whatever is changed in that."""

from collections.abc import Callable, Iterator
from random import Random

import msgspec
import pytest
from tests.unit.core.history.naive_history import NaiveHistory

from anabranch.core.history import History, check
from anabranch.core.history.calls import (
    Append,
    Create,
    Delivery,
    Fate,
    Final,
    Fork,
    Look,
    Promote,
    Read,
    ReadCursor,
    Redeem,
    Squash,
    Stream,
    Trim,
    Verdict,
)

STEPS = 80
INVENTED = 10**12
"""No record of a history has an id like this."""


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("overlapping", [False, True], ids=["one at a time", "overlapping"])
def test_what_a_correct_service_shows_is_accepted(seed: int, overlapping: bool) -> None:
    history = NaiveHistory(seed, overlapping=overlapping).play(STEPS)
    assert check(history) == []


def test_random_histories_hold_every_kind_of_call_and_every_fate() -> None:
    histories = [NaiveHistory(seed).play(STEPS) for seed in range(20)]
    kinds = {type(call).__name__ for history in histories for call in history.calls}
    assert kinds == {
        "Append",
        "Create",
        "Delete",
        "Fork",
        "Look",
        "MarkCursor",
        "Promote",
        "Read",
        "ReadCursor",
        "Redeem",
        "Squash",
        "Stream",
        "Trim",
    }
    assert {final.fate for history in histories for final in history.finals} == {*Fate}
    assert {call.verdict for history in histories for call in history.calls} == {*Verdict}


@pytest.mark.parametrize("seed", range(10))
def test_a_lost_answer_never_makes_a_history_wrong(seed: int) -> None:
    """A client that knows less has less to hold against the service."""
    history = NaiveHistory(seed).play(STEPS)
    chance = Random(seed)
    for call in history.calls:
        if isinstance(call, Append | Squash | Trim | Promote) and call.ok and chance.random() < 0.3:
            call.verdict, call.returned = Verdict.UNKNOWN, (1 << 62) - 1
            if isinstance(call, Append):
                call.position = None
    assert check(history) == []


@pytest.mark.parametrize("seed", range(10))
def test_stored_histories_are_judged_alike(seed: int) -> None:
    history = NaiveHistory(seed).play(STEPS)
    history.finals[0].tail += 1
    history.finals[0].settled += 1
    stored = msgspec.msgpack.encode(history)
    assert check(msgspec.msgpack.decode(stored, type=History)) == check(history) != []


Break = Callable[[History, Random], bool]
"""Breaks a promise of the service; False where this history has nothing to break."""


def _alive(history: History) -> Iterator[Final]:
    return (final for final in history.finals if final.fate is Fate.ALIVE)


def _kept_for_good(history: History) -> list[tuple[Final, Append]]:
    """Appends whose positions were told, and the logs that they are still in."""
    finals = {final.log: final for final in _alive(history)}
    return [
        (finals[call.log], call)
        for call in history.calls
        if isinstance(call, Append)
        and call.ok
        and call.position is not None
        and call.log in finals
        and call.position >= finals[call.log].start
    ]


def loses_the_last_acknowledged_record(history: History, chance: Random) -> bool:
    kept = [(final, call) for final, call in _kept_for_good(history) if final.records]
    kept = [(final, call) for final, call in kept if final.records[-1] == call.records[-1]]
    if not kept:
        return False
    final, _ = chance.choice(kept)
    del final.records[-1], final.origins[-1]
    final.tail, final.settled = final.tail - 1, final.settled - 1
    return True


def swaps_two_records(history: History, chance: Random) -> bool:
    kept = [(final, call) for final, call in _kept_for_good(history) if len(final.records) > 1]
    if not kept:
        return False
    final, call = chance.choice(kept)
    assert call.position is not None
    index = call.position - final.start
    other = index - 1 if index else 1
    records = final.records
    records[index], records[other] = records[other], records[index]
    return True


def repeats_a_record(history: History, chance: Random) -> bool:
    finals = [final for final in _alive(history) if final.records and final.settled == final.tail]
    if not finals:
        return False
    final = chance.choice(finals)
    final.records.append(chance.choice(final.records))
    final.tail, final.settled = final.tail + 1, final.settled + 1
    return True


def invents_a_record(history: History, chance: Random) -> bool:
    finals = [final for final in _alive(history) if final.records]
    if not finals:
        return False
    final = chance.choice(finals)
    final.records[chance.randrange(len(final.records))] = INVENTED
    return True


def keeps_what_it_refused(history: History, chance: Random) -> bool:
    refused = [
        call
        for call in history.calls
        if isinstance(call, Append) and call.verdict is Verdict.REFUSED
    ]
    finals = [final for final in _alive(history) if final.settled == final.tail]
    if not refused or not finals:
        return False
    final, call = chance.choice(finals), chance.choice(refused)
    final.records += call.records
    final.tail = final.settled = final.tail + len(call.records)
    return True


def reads_another_record(history: History, chance: Random) -> bool:
    reads = [call for call in history.calls if isinstance(call, Read) and call.records]
    alive = {final.log for final in _alive(history)}
    reads = [call for call in reads if call.log in alive]
    if not reads:
        return False
    read = chance.choice(reads)
    read.records[chance.randrange(len(read.records))] = INVENTED
    return True


def traces_a_record_to_another_position(history: History, chance: Random) -> bool:
    finals = [final for final in _alive(history) if len(final.origins) > 1]
    if not finals:
        return False
    final = chance.choice(finals)
    index = chance.randrange(1, len(final.origins))
    final.origins[index] = final.origins[index - 1]
    return True


def delivers_with_a_hole(history: History, chance: Random) -> bool:
    streams = [call for call in history.calls if isinstance(call, Stream)]
    pushes = [push for call in streams for push in call.pushes if isinstance(push, Delivery)]
    if not pushes:
        return False
    chance.choice(pushes).first += 1
    return True


def shows_a_cursor_that_nobody_committed(history: History, chance: Random) -> bool:
    reads = [call for call in history.calls if isinstance(call, ReadCursor)]
    if not reads:
        return False
    chance.choice(reads).position = INVENTED
    return True


def ends_a_log_for_no_reason(history: History, chance: Random) -> bool:
    roots = {call.log for call in history.calls if isinstance(call, Create) and call.ok}
    finals = [final for final in _alive(history) if final.log in roots]
    finals = [final for final in finals if not _ended_by(history, final)]
    if not finals:
        return False
    final = chance.choice(finals)
    final.fate, final.records, final.origins = Fate.DELETED, [], []
    return True


def _ended_by(history: History, final: Final) -> bool:
    """Did somebody try to delete it?"""
    tags = {type(call).__name__ for call in history.calls if call.log == final.log}
    return "Delete" in tags


def lets_a_squashed_fork_live(history: History, chance: Random) -> bool:
    squashed = {call.log for call in history.calls if isinstance(call, Squash) and call.ok}
    forks = {call.log: call for call in history.calls if isinstance(call, Fork) and call.ok}
    finals = [final for final in history.finals if final.log in squashed & forks.keys()]
    if not finals:
        return False
    final = chance.choice(finals)
    final.fate, final.fork_point = Fate.ALIVE, forks[final.log].fork_point
    final.start = final.tail = final.settled = final.fork_point
    return True


def forgets_a_log(history: History, chance: Random) -> bool:
    made = {call.log for call in history.calls if isinstance(call, Create | Fork) and call.ok}
    finals = [final for final in history.finals if final.log in made]
    history.finals.remove(chance.choice(finals))
    return True


def looks_back(history: History, chance: Random) -> bool:
    """A tail that is shorter than one that was told before."""
    looks = [call for call in history.calls if isinstance(call, Look | Read) and call.tail]
    twice = [
        (one, other)
        for one in looks
        for other in looks
        if one.log == other.log and one.returned < other.invoked
    ]
    if not twice:
        return False
    one, other = chance.choice(twice)
    other.tail = one.tail - 1
    return True


def redeems_at_another_position(history: History, chance: Random) -> bool:
    """Of a batch that is still in the log that its receipt was redeemed to be in."""
    finals = {final.log: final for final in _alive(history)}
    redeemed = [
        call
        for call in history.calls
        if isinstance(call, Redeem)
        and call.ok
        and call.into in finals
        and call.position > finals[call.into].start
    ]
    if not redeemed:
        return False
    chance.choice(redeemed).position -= 1
    return True


def trims_further_than_anybody_asked(history: History, chance: Random) -> bool:
    finals = [final for final in _alive(history) if final.records]
    highest = max((call.before for call in history.calls if isinstance(call, Trim)), default=0)
    finals = [final for final in finals if final.settled > highest]
    if not finals:
        return False
    final = chance.choice(finals)
    cut = highest + 1 - final.start
    final.start = highest + 1
    del final.records[:cut], final.origins[:cut]
    return True


BREAKS: list[tuple[Break, set[str]]] = [
    (loses_the_last_acknowledged_record, {"B2 immutability"}),
    (swaps_two_records, {"B2 immutability"}),
    (repeats_a_record, {"1 exactly once"}),
    (invents_a_record, {"2 nothing unsent"}),
    (keeps_what_it_refused, {"2 nothing refused"}),
    (reads_another_record, {"B2 immutability"}),
    (traces_a_record_to_another_position, {"7 origin"}),
    (delivers_with_a_hole, {"9 no holes"}),
    (shows_a_cursor_that_nobody_committed, {"3 cursor"}),
    (ends_a_log_for_no_reason, {"8 squash"}),
    (lets_a_squashed_fork_live, {"8 ended"}),
    (forgets_a_log, {"1 acknowledged"}),
    (looks_back, {"5 tail"}),
    (redeems_at_another_position, {"B2 immutability"}),
    (trims_further_than_anybody_asked, {"D8 trim"}),
]


@pytest.mark.parametrize(("break_", "rules"), BREAKS, ids=[each.__name__ for each, _ in BREAKS])
def test_a_broken_promise_is_found_in_every_history_that_has_one(
    break_: Break, rules: set[str]
) -> None:
    broken = 0
    for seed in range(25):
        history = NaiveHistory(seed).play(STEPS)
        if break_(history, Random(seed)):
            broken += 1
            assert rules <= {violation.rule for violation in check(history)}, seed
    assert broken >= 3, "too few histories have what is to be broken"
