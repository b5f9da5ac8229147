"""A window's arithmetic against a merge record by record (Belfast, 3.2, 4.4, 4.7)."""

from hypothesis import given
from hypothesis import strategies as st

from anabranch.core.belfast.ledger.windows import Mode, Seat, ShardId, Window, seats


def window(quotas: list[int], rounds: int, groups: int = 1, start: int = 0) -> Window:
    named = list(enumerate(quotas))
    bases = {shard: 1_000 * shard for shard, _ in named}
    return Window(
        number=0,
        mode=Mode.STEADY,
        start=start,
        rounds=rounds,
        groups=groups,
        seats=seats(named, groups, bases),
    )


def merged(tried: Window) -> list[tuple[ShardId, int, int]]:
    """For each position: whose, which of its shard's records, and how many cuts it takes."""
    slots: list[tuple[ShardId, int, int]] = []
    given_out = dict.fromkeys((seat.shard for seat in tried.seats), 0)
    for cut in range(tried.cuts):
        for seat in tried.seats:
            if seat.group == cut % tried.groups:
                for _ in range(seat.quota):
                    slots.append((seat.shard, given_out[seat.shard], cut + 1))
                    given_out[seat.shard] += 1
    return slots


@st.composite
def windows(draw: st.DrawFn) -> Window:
    quotas = draw(st.lists(st.integers(1, 5), min_size=1, max_size=7))
    return window(
        quotas,
        rounds=draw(st.integers(1, 6)),
        groups=draw(st.integers(1, min(3, len(quotas)))),
        start=draw(st.integers(0, 1_000)),
    )


def test_belfast_3_2_quotas_of_two_three_two() -> None:
    """The paper counts from 1, we from 0."""
    tried = window([2, 3, 2], rounds=2)
    first, second, third = tried.seats

    def places(seat: Seat, cut: int) -> list[int]:
        low = cut * seat.quota
        return [tried.position(seat, nth) for nth in range(low, low + seat.quota)]

    assert [places(seat, 0) for seat in (first, second, third)] == [[0, 1], [2, 3, 4], [5, 6]]
    assert [places(seat, 1) for seat in (first, second, third)] == [[7, 8], [9, 10, 11], [12, 13]]
    assert (tried.covered(1), tried.covered(2), tried.end) == (7, 14, 14)


@given(windows())
def test_every_position_belongs_to_one_record(tried: Window) -> None:
    slots = merged(tried)
    assert tried.end - tried.start == len(slots)
    for at, (shard, nth, _) in enumerate(slots, tried.start):
        assert tried.position(tried.by_shard[shard], nth) == at


@given(windows(), st.data())
def test_runs_are_the_positions_one_by_one(tried: Window, data: st.DataObject) -> None:
    seat = data.draw(st.sampled_from(tried.seats))
    high = data.draw(st.integers(0, tried.rounds * seat.quota))
    low = data.draw(st.integers(0, high))
    told = [at for run in tried.runs(seat, low, high) for at in range(run.first, run.end)]
    assert told == [tried.position(seat, nth) for nth in range(low, high)]


@given(windows(), st.data())
def test_records_below_a_position_are_counted(tried: Window, data: st.DataObject) -> None:
    seat = data.draw(st.sampled_from(tried.seats))
    position = data.draw(st.integers(max(0, tried.start - 3), tried.end + 3))
    below = [shard for shard, _, _ in merged(tried)[: max(0, position - tried.start)]]
    assert tried.records_below(seat, position) == below.count(seat.shard)


@given(windows())
def test_a_cut_covers_what_its_groups_gave(tried: Window) -> None:
    slots = merged(tried)
    for cut in range(tried.cuts + 1):
        covered = [shard for shard, _, needed in slots if needed <= cut]
        assert tried.covered(cut) == tried.start + len(covered)
        assert slots[: len(covered)] == [slot for slot in slots if slot[2] <= cut]
        for seat in tried.seats:
            assert tried.rounds_in(seat, cut) * seat.quota == covered.count(seat.shard)


@given(windows())
def test_belfast_4_7_a_cut_is_reached_when_its_own_group_has_reported(tried: Window) -> None:
    for seat in tried.seats:
        for rounds in range(tried.rounds + 1):
            able = [cut for cut in range(tried.cuts + 1) if tried.rounds_in(seat, cut) <= rounds]
            assert tried.reach(seat, rounds) == max(able)


def test_shards_take_turns_in_the_groups() -> None:
    tried = window([1] * 7, rounds=1, groups=2)
    assert [[seat.shard for seat in tried.seats if seat.group == group] for group in (0, 1)] == [
        [0, 2, 4, 6],
        [1, 3, 5],
    ]
