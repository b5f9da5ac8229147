"""Arrow batches become records: nothing is lost, changed or held."""

import weakref
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch import Record
from anabranch.errors import BadRequest
from anabranch_spark.sink.columns import Columns
from anabranch_spark.sink.rows import ROWS, Rows

pa: Any = pytest.importorskip("pyarrow", reason="the extra `spark` isn't installed")

OCTETS = st.none() | st.binary(max_size=20)
STAMPS = st.none() | st.integers(0, 1 << 50)
PAIRS = st.lists(st.tuples(st.text(max_size=5), OCTETS), max_size=3)
ROW = st.tuples(OCTETS, OCTETS, st.none() | PAIRS, STAMPS)
ALL = Columns(value=0, key=1, headers=2, timestamp=3)
HEADER = pa.struct([("name", pa.string()), ("value", pa.binary())])


def arrow(rows: list[Any]) -> Any:
    values, keys, headers, stamps = zip(*rows, strict=True) if rows else ([], [], [], [])
    pairs = [
        None if each is None else [{"name": name, "value": value} for name, value in each]
        for each in headers
    ]
    columns = [
        pa.array(values, pa.binary()),
        pa.array(keys, pa.binary()),
        pa.array(pairs, pa.list_(HEADER)),
        pa.array(stamps, pa.timestamp("us", "UTC")),
    ]
    return pa.record_batch(columns, names=["value", "key", "headers", "timestamp"])


def naive(row: Any) -> Record:
    value, key, headers, stamp = row
    given = {} if stamp is None else {"timestamp": stamp // 1_000}
    return Record(value, key, tuple(headers or ()), **given)


@given(st.lists(st.lists(ROW, max_size=6), max_size=4))
def test_records_are_the_rows_in_order(batches: list[list[Any]]) -> None:
    found = Rows(map(arrow, batches), ALL, 0)
    assert [*found] == [naive(row) for batch in batches for row in batch]


def test_a_null_value_is_a_record_without_a_value() -> None:
    batch = pa.record_batch([pa.array([None, b"", b"a"], pa.binary())], names=["value"])
    assert [*Rows([batch], Columns(0), 0)] == [Record(None), Record(b""), Record(b"a")]


@pytest.mark.parametrize("kind", ["string", "large_string"])
def test_text_is_appended_as_utf_8(kind: str) -> None:
    texts = pa.array(["Käse", None, ""], getattr(pa, kind)())
    header = pa.struct([("name", pa.string()), ("value", pa.string())])
    pairs = pa.array([[{"name": "n", "value": "ä"}]] * 3, pa.list_(header))
    batch = pa.record_batch([texts, texts, pairs], names=["value", "key", "headers"])
    expected = [Record(each, each, (("n", "ä".encode()),)) for each in ("Käse".encode(), None, b"")]
    assert [*Rows([batch], Columns(0, 1, 2), 0)] == expected


def test_a_time_loses_its_microseconds() -> None:
    batch = arrow([(b"", None, None, 1_999), (b"", None, None, 0)])
    assert [each.timestamp for each in Rows([batch], ALL, 0)] == [1, 0]


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ((b"", None, [(None, b"")], None), "a header is null or has no name"),
        ((b"", None, None, -1), "before 1970"),
    ],
)
def test_what_no_record_can_hold_is_refused_with_its_place(row: Any, says: str) -> None:
    good: Any = (b"", None, None, None)
    batches = [arrow([good] * 3), arrow([good, row])]
    with pytest.raises(BadRequest, match=f"row 4 of partition 17, counted from 0.*{says}"):
        list(Rows(batches, ALL, 17))


def test_the_largest_record_so_far_is_known() -> None:
    sizes = [3, 1, 9, 9, 2]
    rows = Rows([arrow([(bytes(size), None, None, None) for size in sizes])], ALL, 5)
    assert [len(each.value or b"") for each in rows] == sizes
    assert rows.largest == "row 2 of partition 5, counted from 0"


def test_no_more_is_held_than_the_batch_that_is_read() -> None:
    held: list[Any] = []

    def batches() -> Iterator[Any]:
        for _ in range(4):
            batch = arrow([(bytes(9), None, None, None)] * (ROWS + 1))
            held.append(weakref.ref(batch))
            yield batch
            del batch
            assert sum(each() is not None for each in held) <= 1

    assert sum(1 for _ in Rows(batches(), ALL, 0)) == 4 * (ROWS + 1)
