"""Pages of Spark's jobs that are written from the code say what it says."""

from pathlib import Path

from anabranch_spark.expectations import reference


def test_the_page_of_expectations_is_what_their_structs_say(root: Path) -> None:
    found = (root / reference.PAGE).read_text(encoding="utf-8")
    assert found == reference.page(), "run: python -m anabranch_spark.expectations.reference"
