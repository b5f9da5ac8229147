"""Items: what is written is read, from any position on."""

from hypothesis import given
from hypothesis import strategies as st

from anabranch.core.erwin.protocol.rows import NO_SHARD, Row
from anabranch.core.erwin.shard.items import (
    Head,
    ShardItem,
    bound_batches,
    decode_head,
    encode_item,
    kept_batches,
)
from anabranch.core.sequencing.protocol.ids import AppendId

OWN = 1
rows_of = st.lists(
    st.tuples(st.sampled_from([0, OWN, NO_SHARD]), st.integers(1, 3), st.binary(max_size=3)),
    max_size=6,
)


@given(first=st.integers(0, 9), rows_of=rows_of, skip=st.integers(0, 20))
def test_an_item_is_read_from_any_position_on(
    first: int, rows_of: list[tuple[int, int, bytes]], skip: int
) -> None:
    rows: list[Row] = []
    expected: list[tuple[Row, bytes | None]] = []
    position = first
    for shard, count, content in rows_of:
        row = Row(position, count, shard, AppendId(1, 0, position))
        rows.append(row)
        batch = content if shard == OWN else None
        expected.append((row, b"" if shard == NO_SHARD else batch))
        position = row.end
    batches = [content for shard, _, content in rows_of if shard == OWN]
    kept = [b"unordered", b"data"]
    head = Head(
        first=first,
        rows=rows,
        sizes=list(map(len, batches)),
        stable=3,
        trimmed=2,
        number=OWN,
        kept=[(nth, len(each)) for nth, each in enumerate(kept)],
    )
    content = encode_item(head, batches, kept)
    assert decode_head(content) == head
    item = ShardItem(7, content)
    assert (item.local, item.first, item.end) == (7, first, position)
    bound = [(row, batch) for row, batch in expected if row.shard == OWN]
    assert list(bound_batches(head, content)) == bound
    assert list(kept_batches(head, content)) == list(enumerate(kept))
    at = first + skip
    assert list(item.since(at)) == [each for each in expected if each[0].end > at]
