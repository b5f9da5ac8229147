"""A ring holds each append once, in order, and counts what it holds."""

from hypothesis import given
from hypothesis import strategies as st

from anabranch.core.sequencing.protocol.ids import AppendId
from anabranch.core.sequencing.state.ring import ENTRY_BYTES, Entry, Ring


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 9), st.integers(1, 5))))
def test_a_ring_is_a_list_without_repetitions(
    steps: list[tuple[bool, int, int]],
) -> None:
    ring, naive = Ring(), list[Entry]()
    for adds, number, size in steps:
        entry = Entry(AppendId(1, 0, number), size, 10 * size, batch=bytes(10 * size))
        held = [each for each in naive if each.id == entry.id]
        if adds and not held:
            ring.add(entry)
            naive.append(entry)
        elif not adds:
            assert ring.remove(entry.id) == (held[0] if held else None)
            naive = [each for each in naive if each.id != entry.id]
        assert list(ring) == naive
        assert len(ring) == len(naive)
        assert ring.records == sum(each.count for each in naive)
        assert ring.bytes == sum(ENTRY_BYTES + len(each.batch) for each in naive)
        assert (entry.id in ring) == any(each.id == entry.id for each in naive)
