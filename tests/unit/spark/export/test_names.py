"""A file's name says its positions, and nothing else."""

import pytest
from hypothesis import given
from hypothesis import strategies as some

from anabranch.errors import BadRequest
from anabranch_spark.export.names import MANIFEST, STAGING, file_name, is_data, range_of
from anabranch_spark.export.ranges import POSITION_MAX, Range

ranges = some.builds(
    lambda start, more: Range(start, start + more),
    some.integers(0, POSITION_MAX // 2),
    some.integers(1, POSITION_MAX // 2),
)


@given(ranges)
def test_a_name_says_its_range(positions: Range) -> None:
    assert range_of(file_name(positions)) == positions


@given(some.lists(ranges))
def test_names_sort_as_positions_do(given: list[Range]) -> None:
    assert [range_of(name) for name in sorted(map(file_name, given))] == sorted(given)


@pytest.mark.parametrize("name", ["_SUCCESS", "part-00000-a.parquet", MANIFEST, STAGING, ""])
def test_names_of_others_are_no_ranges(name: str) -> None:
    assert range_of(name) is None


def test_a_name_that_no_export_gives_is_refused() -> None:
    with pytest.raises(BadRequest):
        range_of(f"positions-{5:019d}-{5:019d}.parquet")


@pytest.mark.parametrize(
    ("path", "data"),
    [
        ("stage/0/part-00000-4b5e-c000.snappy.parquet", True),
        ("part-00012-4b5e-c000.zstd.parquet", True),
        ("stage/0/.part-00012-4b5e-c000.parquet.crc", False),
        ("stage/part-0.parquet/_SUCCESS", False),
        ("_SUCCESS", False),
    ],
)
def test_only_files_with_records_are_data(path: str, data: bool) -> None:
    assert is_data(path) is data


def test_readers_of_folders_skip_what_is_not_data() -> None:
    assert MANIFEST.startswith("_")
    assert STAGING.startswith("_")
