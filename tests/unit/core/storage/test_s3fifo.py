"""What a cache keeps: no more than its room, nothing that it gave away, and what is asked for."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch.core.storage.s3fifo import Keeping

steps = st.lists(
    st.tuples(
        st.sampled_from(["put", "put", "fresh", "get", "get", "pass", "drop"]),
        st.integers(0, 12),
        st.integers(0, 30),
    ),
    max_size=80,
)


@given(room=st.integers(0, 100), steps=steps)
def test_its_room_is_kept_to_and_each_thing_is_given_back_once(
    room: int, steps: list[tuple[str, int, int]]
) -> None:
    """The model: what came and didn't go, by key."""
    cache: Keeping[int, tuple[int, int]] = Keeping(room)
    there: dict[int, tuple[int, int]] = {}
    weights: dict[tuple[int, int], int] = {}
    for turn, (what, key, size) in enumerate(steps):
        if what in ("put", "fresh") and key not in cache:
            value = (key, turn)
            weights[value] = size
            there[key] = value
            for gone in cache.put(key, value, size, fresh=what == "fresh"):
                assert there.pop(gone[0]) == gone, "what goes was there, and goes once"
        elif what in ("get", "pass"):
            assert cache.get(key, passing=what == "pass") == there.get(key)
        elif what == "drop":
            assert cache.drop(key) == there.pop(key, None)
        assert len(cache) == len(there)
        assert all(key in cache for key in there)
        assert cache.bytes == sum(weights[value] for value in there.values()) <= room


def full(room: int = 100, size: int = 1) -> Keeping[str, str]:
    """Of what others come back for."""
    cache: Keeping[str, str] = Keeping(room)
    for number in range(room // size):
        key = f"hot {number}"
        cache.put(key, key, size, fresh=True)
        for _ in range(3):
            cache.get(key)
    return cache


def test_one_who_goes_through_everything_drives_out_nothing_that_others_come_back_for() -> None:
    cache = full(90)
    cache._bytes_max = 100
    for number in range(10_000):
        key = f"scan {number}"
        cache.put(key, key, 1)
        cache.get(key)
    assert sum(f"hot {number}" in cache for number in range(90)) == 90


def test_what_is_read_in_one_go_bit_by_bit_is_read_once() -> None:
    """A reader that comes to ever later places of one thing makes no claim to have it kept."""
    cache: Keeping[str, str] = Keeping(10)
    cache.put("passed", "passed", 5)
    for place in range(100):
        cache.get("passed", place)
    cache.put("another", "another", 5)
    assert cache.put("third", "third", 5) == ["passed"]


def test_what_is_asked_for_again_stays() -> None:
    cache: Keeping[str, str] = Keeping(10)
    cache.put("wanted", "wanted", 5)
    for _ in range(2):
        cache.get("wanted", 0)
    cache.put("another", "another", 5)
    assert cache.put("third", "third", 5) == ["another"]
    assert "wanted" in cache


def test_what_failed_and_is_put_again_soon_was_worth_keeping() -> None:
    cache: Keeping[str, str] = Keeping(100)
    for number in range(100):
        cache.put(f"{number}", "", 1)
    cache.put("one more", "", 1)
    assert "0" not in cache
    cache.put("0", "", 1)
    for number in range(50):
        cache.put(f"later {number}", "", 1)
    assert "0" in cache, "it isn't on probation any more"


@pytest.mark.parametrize("fresh", [True, False])
def test_what_is_larger_than_the_room_goes_at_once(fresh: bool) -> None:
    cache: Keeping[str, str] = Keeping(10)
    assert cache.put("large", "large", 11, fresh=fresh) == ["large"]
    assert (len(cache), cache.bytes) == (0, 0)


def test_things_without_weight_are_found_too() -> None:
    cache: Keeping[str, str] = Keeping(0)
    cache.put("nothing", "nothing", 0)
    assert cache.get("nothing") == "nothing"
