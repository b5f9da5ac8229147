"""Whose requests they were: all of them are somebody's, and the books balance."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch.core.types import LogId
from anabranch.core.usage import Share, Usage

parts = st.dictionaries(st.integers(1, 9), st.integers(1, 1_000), min_size=1, max_size=5)


@given(most=st.integers(1, 6), turns=st.lists(st.tuples(st.booleans(), parts), max_size=30))
def test_the_shares_of_all_are_all_there_was(
    most: int, turns: list[tuple[bool, dict[int, int]]]
) -> None:
    usage = Usage(most)
    puts = gets = put_bytes = got_bytes = 0
    latest: list[int] = []
    for wrote, sizes in turns:
        each = [(LogId(log), size) for log, size in sizes.items()]
        if wrote:
            usage.wrote(each)
            puts, put_bytes = puts + 1, put_bytes + sum(sizes.values())
        else:
            usage.read(each)
            gets, got_bytes = gets + 1, got_bytes + sum(sizes.values())
        latest = [log for log in latest if log not in sizes] + list(sizes)
        shown = dict(usage.by_log())
        assert list(shown) == latest[-most:], "who was charged last comes last"
        shares = [usage.others, *shown.values()]
        assert sum(share.puts for share in shares) == pytest.approx(puts)
        assert sum(share.gets for share in shares) == pytest.approx(gets)
        assert sum(share.put_bytes for share in shares) == put_bytes
        assert sum(share.got_bytes for share in shares) == got_bytes


def test_one_who_writes_most_of_an_object_bears_most_of_its_put() -> None:
    usage = Usage()
    usage.wrote([(LogId(1), 900), (LogId(2), 100)])
    usage.read([(LogId(2), 10)])
    assert dict(usage.by_log()) == {
        1: Share(puts=0.9, put_bytes=900),
        2: Share(puts=0.1, gets=1.0, put_bytes=100, got_bytes=10),
    }


def test_an_object_of_nobody_is_nobodys() -> None:
    usage = Usage()
    usage.wrote([])
    usage.read([])
    assert list(usage.by_log()) == []
