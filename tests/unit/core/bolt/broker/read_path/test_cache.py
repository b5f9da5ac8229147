"""The cache of extents holds what it may, whatever the extents are made of."""

from __future__ import annotations

import tracemalloc
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch.core.bolt.broker.read_path import cache
from anabranch.core.bolt.broker.read_path.cache import Extent, ExtentCache, ExtentKey
from anabranch.core.bolt.broker.read_path.gets import Flight, Line, flights
from anabranch.core.storage import s3fifo
from anabranch.core.types import ObjectId

BYTES_MAX = 1 << 20

SOURCES = (__file__, cache.__file__, s3fifo.__file__)
THEIRS = [tracemalloc.Filter(True, source) for source in SOURCES]
"""What extents and the cache of them allocate, and not what other threads of the process do."""


def extent(batches: int, size: int) -> Extent:
    """As it comes from the store: batches are views of one buffer."""
    content = memoryview(bytes(batches * size))
    views = [content[at : at + size] for at in range(0, batches * size, size)]
    return Extent(views, list(range(1_000, 1_000 + batches)), len(content))


@pytest.mark.parametrize(("batches", "size"), [(1, 100), (64, 100), (1_000, 70), (1, 100_000)])
def test_the_cache_takes_no_more_memory_than_it_is_given(batches: int, size: int) -> None:
    kept = ExtentCache(BYTES_MAX)
    extents = 3 * BYTES_MAX // (batches * size)
    tracemalloc.start()
    for turn in range(extents):
        kept.put((ObjectId(turn), 0, batches * size), extent(batches, size))
    traces = tracemalloc.take_snapshot().filter_traces(THEIRS)
    tracemalloc.stop()
    assert BYTES_MAX // 2 < kept.bytes <= BYTES_MAX
    taken = sum(each.size for each in traces.statistics("filename"))
    assert BYTES_MAX // 2 < taken <= 1.25 * BYTES_MAX


def key(turn: int, size: int = 1_000) -> ExtentKey:
    return (ObjectId(turn), 0, size)


def filled(cache: ExtentCache, *turns: int, fresh: bool = False) -> None:
    for turn in turns:
        cache.put(key(turn), extent(1, 1_000), fresh=fresh)


def at_hand(cache: ExtentCache, turns: range) -> int:
    return sum(key(turn) in cache for turn in turns)


def test_a_scan_drives_out_what_it_read_itself() -> None:
    """Of what others read again, and of what was just written, nothing."""
    cache = ExtentCache(BYTES_MAX)
    for turn in range(100):
        filled(cache, turn)
        cache.get(key(turn))
        cache.get(key(turn))
    filled(cache, *range(100, 200), fresh=True)
    for turn in range(1_000, 6_000):
        filled(cache, turn)
        cache.get(key(turn))
    assert at_hand(cache, range(200)) == 200
    assert at_hand(cache, range(1_000, 6_000)) < 400


def test_one_that_reads_an_extent_bit_by_bit_is_one_reader() -> None:
    cache = ExtentCache(BYTES_MAX)
    filled(cache, *range(100), fresh=True)
    for turn in range(1_000, 4_000):
        filled(cache, turn)
        for skip in range(0, 1_000, 100):
            cache.get(key(turn), skip)
    assert at_hand(cache, range(100)) == 100


def test_what_is_missed_soon_after_it_went_is_kept_the_next_time() -> None:
    cache = ExtentCache(BYTES_MAX)
    filled(cache, *range(600))
    gone = next(turn for turn in range(600) if key(turn) not in cache)
    filled(cache, gone)
    filled(cache, *range(1_000, 3_000))
    assert key(gone) in cache


def test_what_nobody_reads_any_more_goes_in_the_end() -> None:
    cache = ExtentCache(BYTES_MAX)
    filled(cache, *range(100), fresh=True)
    for _ in range(20):
        for turn in range(100):
            cache.get(key(turn))
    filled(cache, *range(1_000, 5_000), fresh=True)
    assert at_hand(cache, range(100)) == 0


@given(
    st.lists(
        st.tuples(st.sampled_from(["put", "fresh", "get", "passing"]), st.integers(0, 30)),
        max_size=300,
    ),
    st.sampled_from([1, 5_000, 20_000]),
)
def test_the_cache_gives_what_was_put_or_nothing(
    steps: list[tuple[str, int]], bytes_max: int
) -> None:
    cache = ExtentCache(bytes_max)
    put: dict[ExtentKey, Extent] = {}
    for what, turn in steps:
        size = 50 * turn + 1
        if what in ("put", "fresh"):
            known = key(turn, size) in cache
            new = extent(1, size)
            cache.put(key(turn, size), new, fresh=what == "fresh")
            if not known:
                put[key(turn, size)] = new
        else:
            found = cache.get(key(turn, size), turn, passing=what == "passing")
            assert found is None or found is put[key(turn, size)]
        held = [each for each in put if each in cache]
        assert len(cache) == len(held)
        assert cache.bytes == sum(
            1_024 + 240 * len(put[each].batches) + put[each].bytes for each in held
        )
        assert cache.bytes <= bytes_max


extents = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 50), st.integers(1, 10)), unique=True, max_size=30
)


@given(extents, st.integers(0, 20))
def test_flights_bring_everything_once_and_little_else(
    found: list[tuple[int, int, int]], gap_bytes_max: int
) -> None:
    keys = [(ObjectId(object), offset * 7, length) for object, offset, length in found]
    planned = [*flights(keys, gap_bytes_max)]
    assert sorted(each for flight in planned for each in flight.keys) == sorted(keys)
    for flight in planned:
        wanted = {
            byte for _, offset, length in flight.keys for byte in range(offset, offset + length)
        }
        assert {object for object, _, _ in flight.keys} == {flight.object}
        assert min(wanted) == flight.start
        assert max(wanted) == flight.end - 1
        unwanted = [byte for byte in range(flight.start, flight.end) if byte not in wanted]
        assert len(unwanted) <= gap_bytes_max * (len(flight.keys) - 1)
    for one, other in pairwise(planned):
        assert one.object != other.object or other.start > one.end + gap_bytes_max


@given(st.lists(st.one_of(st.integers(0, 9), st.none()), max_size=60), st.integers(1, 4))
def test_requests_in_line_take_turns(steps: list[int | None], in_flight_max: int) -> None:
    """A number is a request of so many GETs; None, that one in flight ends."""
    line, departed = Line(in_flight_max), list[Flight]()
    requests: list[list[Flight]] = []
    for step in steps:
        if step is None:
            if line.in_flight:
                line.land()
        else:
            own = [Flight(ObjectId(len(requests)), [key(turn)]) for turn in range(step)]
            requests.append(own)
            line.join(own)
        while (flight := line.depart()) is not None:
            departed.append(flight)
        waiting = sum(map(len, requests)) - len(departed)
        assert len(line) == waiting
        assert line.in_flight <= in_flight_max
        assert not waiting or line.in_flight == in_flight_max
        gone = [sum(each in departed for each in own) for own in requests]
        assert [f for own in requests for f in own if f in departed] == [
            f for own, count in zip(requests, gone, strict=True) for f in own[:count]
        ]
    for own in requests:
        places = [departed.index(flight) for flight in own if flight in departed]
        for one, other in pairwise(places):
            between = [flight.object for flight in departed[one + 1 : other]]
            assert len(between) == len(set(between)), "nobody else's turn comes twice before"
