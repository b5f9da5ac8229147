"""Record batches have every record's columns, and bounded rows and bytes."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch_spark.source import columns
from anabranch_spark.source.arrow import HEADER
from anabranch_spark.source.columns import BYTES_MAX, ROWS_MAX, Rows, wanted
from anabranch_spark.source.decode import Stretch
from anabranch_spark.source.schema import available

octets = st.none() | st.binary(max_size=9)
row = st.tuples(octets, octets, st.integers(-1, 1 << 45), st.lists(st.tuples(st.text(), octets)))
stretches = st.lists(
    st.tuples(st.integers(0, 2), st.integers(0, 9), st.lists(row, min_size=1, max_size=7)),
    max_size=12,
)


def stretch(first: int, origin: int, origin_first: int, rows: list[tuple]) -> Stretch:
    keys, values, stamps, headers = (list(each) for each in zip(*rows, strict=True))
    size = 61 + sum(len(value or b"") for value in values)
    pairs = [[{"name": name, "value": value} for name, value in each] for each in headers]
    return Stretch(
        first,
        origin,
        origin_first,
        len(rows),
        size,
        pa.array(keys, pa.binary()),
        pa.array(values, pa.binary()),
        pa.array(stamps, pa.int64()),
        pa.array(pairs, pa.list_(HEADER)),
    )


def collected(rows: Rows, given_stretches: list[Stretch]) -> list[pa.RecordBatch]:
    return [*rows.add(given_stretches), *rows.rest()]


@given(stretches)
def test_every_record_is_given_with_its_own_columns(
    drawn: list[tuple[int, int, list[tuple]]],
) -> None:
    made, expected, position = list[Stretch](), list[dict], 0
    expected = []
    for origin, gap, rows in drawn:
        made.append(stretch(position, origin, position + gap, rows))
        for nth, (key, value, stamp, headers) in enumerate(rows):
            expected.append(
                {
                    "log": "orders",
                    "position": position + nth,
                    "key": key,
                    "value": value,
                    "headers": [{"name": name, "value": each} for name, each in headers],
                    "origin": origin,
                    "origin_position": position + gap + nth,
                    "timestamp": stamp * 1_000 if stamp >= 0 else None,
                }
            )
        position += len(rows)
    found = collected(Rows("orders", available(several=True)), made)
    plain = [
        {**each, "timestamp": None if each["timestamp"] is None else each["timestamp"]}
        for batch in found
        for each in batch.set_column(
            batch.schema.get_field_index("timestamp"),
            "timestamp",
            batch.column("timestamp").cast(pa.int64()),
        ).to_pylist()
    ]
    assert plain == expected


def test_long_runs_and_short_ones_have_the_same_positions() -> None:
    rows = [(None, b"v", 0, [])]
    names = ("position", "origin", "origin_position")
    long = [stretch(1_000, 1, 5, rows * 3_000), stretch(4_000, 2, 0, rows * 2_000)]
    short = [stretch(1_000 + nth, 1, 5 + nth, rows) for nth in range(3_000)]
    short += [stretch(4_000 + nth, 2, nth, rows) for nth in range(2_000)]
    scattered = [stretch(2 * nth, nth % 2, 3 * nth, rows) for nth in range(50)]
    (one,) = collected(Rows("orders", names), long)
    (other,) = collected(Rows("orders", names), short)
    assert one == other
    assert one.column("position").to_pylist() == [*range(1_000, 6_000)]
    (third,) = collected(Rows("orders", names), scattered)
    assert third.column("origin_position").to_pylist() == [3 * nth for nth in range(50)]
    assert third.column("origin").to_pylist() == [nth % 2 for nth in range(50)]


def test_no_record_batch_has_more_rows_than_it_may() -> None:
    rows = [(b"k", b"v", 1, [])]
    given_stretches = [stretch(nth * 7_000, 1, nth * 7_000, rows * 7_000) for nth in range(5)] + [
        stretch(35_000, 1, 35_000, rows * 25_000)
    ]
    found = collected(Rows("orders", ("position",)), given_stretches)
    assert all(0 < batch.num_rows <= ROWS_MAX for batch in found)
    positions = [each for batch in found for each in batch.column(0).to_pylist()]
    assert positions == [*range(60_000)]


def test_no_record_batch_has_more_bytes_than_it_may_unless_it_is_one_record() -> None:
    sizes = [3_000_000, 10, 9_000_000, 10, 10, 5_000_000, 5_000_000]
    rows = [(None, bytes(size), 1, []) for size in sizes]
    found = collected(Rows("orders", ("value",)), [stretch(0, 1, 0, rows)])
    assert [len(each) for batch in found for each in batch.column(0).to_pylist()] == sizes
    for batch in found:
        assert batch.num_rows == 1 or batch.nbytes <= BYTES_MAX


def test_times_that_spark_cannot_express_are_null() -> None:
    rows = [(None, None, stamp, []) for stamp in (-1, 0, 5, 1 << 60)]
    (batch,) = collected(Rows("orders", ("timestamp",)), [stretch(0, 1, 0, rows)])
    assert batch.column(0).cast(pa.int64()).to_pylist() == [None, 0, 5_000, None]


def test_only_what_is_asked_for_is_decoded() -> None:
    assert wanted(("position", "value")) == (False, True, False, False)
    assert wanted(available(several=False)) == (True, True, True, True)


def test_rows_without_any_column_are_still_counted() -> None:
    rows = [(None, b"v", 0, [])]
    (batch,) = collected(Rows("orders", ()), [stretch(0, 1, 0, rows * 17)])
    assert (batch.num_rows, batch.num_columns) == (17, 0)


def test_nothing_is_given_for_nothing() -> None:
    assert collected(Rows("orders", ("value",)), []) == []


@pytest.mark.parametrize("name", available(several=True))
def test_every_column_has_its_type(name: str) -> None:
    (batch,) = collected(Rows("orders", (name,)), [stretch(0, 1, 0, [(b"k", b"v", 1, [])])])
    assert batch.schema.field(name).type == columns.TYPES[name]
