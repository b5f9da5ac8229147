"""What a subscriber is told of eras and confirmations, against the windows themselves."""

from bisect import bisect_right
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from anabranch.core.belfast.ledger.decisions import Admit, OpenWindow
from anabranch.core.belfast.ledger.ledger import Ledger
from anabranch.core.belfast.ledger.windows import Mode
from anabranch.core.belfast.protocol.messages import Confirmed, Eras, Subscribe
from anabranch.core.belfast.shard.streams import Stream, names_of
from anabranch.core.machine import Effect, Reply

NAMES = ("a", "b", "c")


def stream(start: int = 0) -> Stream:
    return Stream(token=7, shard=0, message=Subscribe("a", start), credit=1_000)


def messages(effects: list[Effect]) -> list[Any]:
    found: list[Any] = []
    for each in effects:
        assert isinstance(each, Reply)
        assert each.to == 7
        found.append(each.message)
    return found


def opened(ledger: Ledger, *quotas: int, rounds: int = 1) -> None:
    number = ledger.windows[-1].number + 1 if ledger.windows else 0
    seated = tuple((shard, quota) for shard, quota in enumerate(quotas) if quota)
    ledger.apply([OpenWindow(number, Mode.STEADY, rounds, 1, seated)])


def admitted() -> Ledger:
    ledger = Ledger()
    ledger.apply([Admit(name, (name,), 1) for name in NAMES])
    return ledger


quotas = st.tuples(st.integers(0, 2), st.integers(0, 2), st.integers(0, 2)).filter(any)


windows_to_come = st.lists(
    st.tuples(quotas, st.integers(1, 3), st.booleans()), min_size=4, max_size=12
)


@given(windows_to_come, st.integers(0, 9))
def test_a_subscriber_knows_of_every_position_whose_it_may_be(
    windows: list[tuple[tuple[int, int, int], int, bool]], start: int
) -> None:
    """Each era is told once, before anything that lies in it, and the first holds the start."""
    ledger, tried = admitted(), stream(start)
    effects: list[Effect] = []
    owners: list[tuple[str, ...]] = []
    for seats, rounds, told in windows:
        opened(ledger, *seats, rounds=rounds)
        names = tuple(name for name, quota in zip(NAMES, seats, strict=True) if quota)
        owners += [names] * (sum(seats) * rounds)
        if told:
            tried.tell_eras(ledger, effects)
    tried.tell_eras(ledger, effects)
    said = messages(effects)
    if ledger.horizon <= start:
        assert said == []
        return
    eras = [era for each in said for era in each.eras]
    starts = [begin for begin, _ in eras]
    assert starts == sorted(set(starts)), "each once, and in order"
    assert len([begin for begin in starts if begin <= start]) == 1, "only that of the start"
    for at in range(start, len(owners)):
        _, shards = eras[bisect_right(starts, at) - 1]
        assert shards == owners[at]
    knowns = [each.known for each in said]
    assert knowns == sorted(set(knowns))
    assert knowns[-1] == ledger.horizon
    for each in said:
        assert all(begin < each.known for begin, _ in each.eras)


def test_an_era_that_may_still_become_another_is_not_told() -> None:
    """It begins where everything ends that is published: the next window decides whose it is."""
    ledger, tried, effects = admitted(), stream(), list[Effect]()
    opened(ledger, 1, 1, 0)
    tried.tell_eras(ledger, effects)
    assert messages(effects) == [Eras(((0, ("a", "b")),), 2)]
    effects.clear()
    tried.tell_eras(ledger, effects)
    assert effects == []
    opened(ledger, 1, 1, 0)
    opened(ledger, 0, 0, 1)
    tried.tell_eras(ledger, effects)
    assert messages(effects) == [Eras(((4, ("c",)),), 5)]


def test_without_another_era_it_is_still_told_how_far_there_is_none() -> None:
    ledger, tried, effects = admitted(), stream(), list[Effect]()
    opened(ledger, 1, 1, 1)
    tried.tell_eras(ledger, effects)
    opened(ledger, 1, 1, 1)
    effects.clear()
    tried.tell_eras(ledger, effects)
    assert messages(effects) == [Eras((), 6)]


@given(st.lists(st.integers(0, 20)))
def test_a_confirmation_is_told_when_it_goes_further(positions: list[int]) -> None:
    tried, effects = stream(), list[Effect]()
    for upto in positions:
        tried.tell_confirmed(Confirmed(0, upto), effects)
    told = [each.upto for each in messages(effects)]
    assert told == sorted(set(told))
    assert told[-1:] == ([max(positions)] if positions else [])
    assert told[:1] == positions[:1]


def test_names_are_in_the_order_in_which_they_were_asked_for() -> None:
    assert names_of(admitted(), (2, 0)) == ("c", "a")
