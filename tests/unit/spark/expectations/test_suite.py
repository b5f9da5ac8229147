"""What the words of a suite stand for."""

import pytest

from anabranch_spark.expectations.suite import milliseconds


@pytest.mark.parametrize(
    ("text", "found"),
    [("5ms", 5), ("90s", 90_000), ("15m", 900_000), ("6h", 21_600_000), ("2d", 172_800_000)],
)
def test_a_duration_is_a_number_and_its_unit(text: str, found: int) -> None:
    assert milliseconds(text) == found
