from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch.core.errors import CorruptBatch
from anabranch.core.records.batch import peek
from anabranch.core.records.origins import Delivery, Run, deliveries, stretches
from anabranch.core.records.record import Record, encode
from anabranch.core.types import LogId

ROOT, FORK = LogId(1), LogId(2)


def batches(counts: list[int], first: int = 0) -> list[bytes]:
    """Each record's value is its position in the log it was appended to."""
    starts = accumulate(counts, initial=first)
    return [
        encode([Record(b"%d" % (start + n), timestamp=1) for n in range(count)], now=1)
        for start, count in zip(starts, counts, strict=False)
    ]


def brief(delivery: Delivery) -> tuple[int, int, int, bytes | None]:
    position, log, origin, record = delivery
    return position, log, origin, record.value


def test_figure_4_read_on_the_fork_names_every_origin() -> None:
    g0, g1, g2 = batches([1, 1, 1])
    r0, r1 = batches([1, 1], first=1)
    r1 = encode([Record(b"3", timestamp=1)], now=1)
    order = [(g0, ROOT, 0), (r0, FORK, 1), (g1, ROOT, 1), (r1, FORK, 3), (g2, ROOT, 2)]
    runs = [
        Run(position, 1, 0, log, origin, len(batch))
        for position, (batch, log, origin) in enumerate(order)
    ]
    read = [brief(each) for each in deliveries(runs, [batch for batch, _, _ in order])]
    assert read == [
        (position, log, origin, b"%d" % origin) for position, (_, log, origin) in enumerate(order)
    ]


@given(st.lists(st.integers(1, 5), min_size=1, max_size=8), st.data(), st.integers(0, 2**40))
def test_a_run_may_begin_and_end_inside_a_batch(
    counts: list[int], data: st.DataObject, first: int
) -> None:
    total = sum(counts)
    skip = data.draw(st.integers(0, total - 1))
    count = data.draw(st.integers(1, total - skip))
    content = b"".join(batches(counts, first=100))
    run = Run(first, count, skip, ROOT, 100 + skip, len(content))
    assert [brief(each) for each in deliveries([run], [content])] == [
        (first + n, ROOT, 100 + skip + n, b"%d" % (100 + skip + n)) for n in range(count)
    ]


def test_runs_follow_each_other_however_their_bytes_are_cut() -> None:
    root, fork = batches([2, 3]), batches([4], first=50)
    runs = [
        Run(10, 4, 1, ROOT, 1, len(b"".join(root))),
        Run(14, 2, 0, FORK, 50, len(fork[0])),
    ]
    expected = [(10 + n, ROOT, 1 + n, b"%d" % (1 + n)) for n in range(4)]
    expected += [(14 + n, FORK, 50 + n, b"%d" % (50 + n)) for n in range(2)]
    whole = b"".join((*root, *fork))
    for pieces in ([whole], [*root, *fork], [memoryview(whole)[:7], whole[7:]]):
        assert [brief(each) for each in deliveries(runs, pieces)] == expected


def test_stretches_come_batch_by_batch() -> None:
    content = b"".join(batches([2, 3, 2]))
    found = list(stretches([Run(0, 4, 1, ROOT, 1, len(content))], [content]))
    assert [(each.first, each.origin_first, len(each.records)) for each in found] == [
        (0, 1, 1),
        (1, 2, 3),
    ]


def test_nothing_read_is_nothing_delivered() -> None:
    assert list(deliveries([], [])) == []


def test_damage_is_noticed_also_in_a_batch_that_is_only_passed_over() -> None:
    passed_over, meant, *others = batches([4, 2, 2, 2])
    lying = bytearray(passed_over)
    lying[60] ^= 4
    assert peek(lying).count == 0
    content = b"".join((lying, meant, *others))
    with pytest.raises(CorruptBatch, match="of log 1"):
        list(deliveries([Run(0, 2, 4, ROOT, 4, len(content))], [content]))


def test_a_reply_that_holds_less_or_more_than_its_runs_is_refused() -> None:
    content = batches([2])[0]
    for run in (
        Run(0, 3, 0, ROOT, 0, len(content)),
        Run(0, 1, 2, ROOT, 2, len(content)),
        Run(0, 2, 0, ROOT, 0, len(content) - 1),
        Run(0, 2, 0, ROOT, 0, len(content) + 1),
    ):
        with pytest.raises(CorruptBatch):
            list(deliveries([run], [content]))
