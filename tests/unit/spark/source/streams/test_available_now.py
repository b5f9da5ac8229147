"""Which version of Spark does what."""

import pytest

from anabranch_spark.source.streams.available_now import limits_micro_batches


@pytest.mark.parametrize(
    ("version", "limits"), [("4.1.3", False), ("4.2.0", True), ("4.10.0", True), ("5.0.0", True)]
)
def test_readers_limit_micro_batches_from_4_2_on(version: str, limits: bool) -> None:
    assert limits_micro_batches(version) == limits
