"""The index of a log against a plain list of its items."""

from random import Random

import pytest

from anabranch.core.replication.entries import Item
from anabranch.core.replication.index import Index

CACHE_BYTES = 600


class Model:
    """Items with their entries in the journal; None for those that are not stored yet."""

    def __init__(self) -> None:
        self.items: list[tuple[Item, int | None]] = []
        self.first = 0

    @property
    def last(self) -> int:
        return self.items[-1][0].end if self.items else self.first

    def ends(self) -> list[int]:
        return [self.first, *(item.end for item, _ in self.items)]

    def between(self, low: int, high: int) -> list[tuple[Item, int | None]]:
        return [each for each in self.items if each[0].end > low and each[0].first < high]


def step(index: Index, model: Model, chance: Random, entries: int) -> None:
    what = chance.random()
    if what < 0.5:
        item = Item(model.last, chance.randint(1, 4), bytes(chance.randint(0, 120)))
        index.add(item)
        model.items.append((item, None))
    elif what < 0.85:
        nth = next((nth for nth, each in enumerate(model.items) if each[1] is None), None)
        if nth is not None:
            item = model.items[nth][0]
            index.store(item, entries)
            model.items[nth] = (item, entries)
    elif what < 0.93:
        to = chance.choice(model.ends())
        index.cut(to)
        model.items = [each for each in model.items if each[0].end <= to]
    else:
        below = chance.randint(model.first, model.last)
        index.trim(below)
        while model.items and model.items[0][0].end <= below and model.items[0][1] is not None:
            model.first = model.items.pop(0)[0].end


def compare(index: Index, model: Model, chance: Random) -> None:
    assert (index.first, index.last) == (model.first, model.last)
    unstored = [item for item, entry in model.items if entry is None]
    assert index.stored == (unstored[0].first if unstored else model.last)
    place = chance.randint(model.first, model.last)
    assert index.boundary(place) == min(end for end in model.ends() if end >= place)
    if not model.items:
        return
    low = chance.randrange(model.first, model.last)
    high = chance.randint(low + 1, model.last)
    wanted = model.between(low, high)
    assert index.entry(low) == wanted[0][1]
    stored = [entry for _, entry in wanted if entry is not None]
    assert list(index.entries(low, high, 1 << 30)) == stored
    cached = index.items(low, high, 1 << 30)
    assert cached is None or cached == [item for item, _ in wanted]
    if any(entry is None for _, entry in wanted[:1]):
        assert cached is not None, "what is not journaled is cached"


@pytest.mark.parametrize("seed", range(60))
def test_an_index_is_a_list_of_items_whatever_its_cache_holds(seed: int) -> None:
    chance = Random(seed)
    index, model = Index(cache_bytes=CACHE_BYTES), Model()
    for entries in range(1, 150):
        step(index, model, chance, entries)
        compare(index, model, chance)


def test_the_cache_is_bounded_by_bytes_and_drops_the_oldest() -> None:
    index = Index(cache_bytes=CACHE_BYTES)
    for nth in range(50):
        item = Item(nth, 1, bytes(20))
        index.add(item)
        index.store(item, nth + 1)
    assert index.items(0, 50, 1 << 30) is None
    recent = index.items(46, 50, 1 << 30)
    assert recent is not None
    assert [item.first for item in recent] == [46, 47, 48, 49]


def test_as_many_items_as_fit_and_at_least_one() -> None:
    index = Index(cache_bytes=1 << 20)
    for nth in range(5):
        index.add(Item(nth, 1, bytes(100)))
    assert len(index.items(0, 5, 450) or ()) == 2
    assert len(index.items(0, 5, 1) or ()) == 1


def test_an_item_that_was_cut_off_while_it_was_written_is_passed_over() -> None:
    index = Index(cache_bytes=1 << 20)
    old, new = Item(0, 1, b"old"), Item(0, 1, b"new")
    index.add(old)
    index.cut(0)
    index.add(new)
    index.store(old, 1)
    assert index.stored == 0
    index.store(new, 3)
    assert (index.stored, index.entry(0)) == (1, 3)
