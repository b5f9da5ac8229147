"""Which item holds a position, against a naive list."""

from hypothesis import given
from hypothesis import strategies as st

from anabranch.core.erwin.shard.item_map import ItemMap

steps = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.integers(0, 3), st.integers(0, 4)),
        st.tuples(st.just("cut"), st.integers(0, 20), st.just(0)),
        st.tuples(st.just("trim"), st.integers(0, 20), st.just(0)),
        st.tuples(st.just("skip"), st.integers(0, 20), st.just(0)),
    ),
    max_size=30,
)


@given(steps)
def test_a_map_says_what_a_list_would(steps: list[tuple[str, int, int]]) -> None:
    found, first = ItemMap(), 0
    items: list[tuple[int, int]] = []
    for name, number, count in steps:
        if name == "add":
            start = (items[-1][1] if items else 0) + number
            found.add(found.last, start, start + count)
            items.append((start, start + count))
        elif name == "cut":
            to = min(max(number, first), first + len(items))
            found.cut(to)
            del items[to - first :]
        elif name == "trim":
            gone = max(0, min(number, first + len(items)) - first)
            found.trim(number)
            first, items = first + gone, items[gone:]
        else:
            found.skip(number)
            first, items = number, []
    _compare(found, first, items)
    again = ItemMap()
    again.restore(found.image())
    _compare(again, first, items)


def _compare(found: ItemMap, first: int, items: list[tuple[int, int]]) -> None:
    assert (found.first, found.last, len(found)) == (first, first + len(items), len(items))
    assert found.end == (items[-1][1] if items else 0)
    for position in range(found.end + 2):
        behind = [nth for nth, (_, end) in enumerate(items) if end > position]
        assert found.holder(position) == first + (behind[0] if behind else len(items))
    for nth, (start, end) in enumerate(items):
        assert found.start(first + nth) == start
        assert found.end_before(first + nth + 1) == end
