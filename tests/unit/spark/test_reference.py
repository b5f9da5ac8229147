"""The reference page says what the code says."""

from pathlib import Path

from anabranch_spark.option_table import READING, WRITING
from anabranch_spark.reference import PAGE, page


def test_the_page_is_as_the_code_writes_it(root: Path) -> None:
    assert (root / PAGE).read_text() == page(), "python -m anabranch_spark.reference"


def test_every_option_has_a_sentence_and_a_kind() -> None:
    for option in READING + WRITING:
        assert option.means.endswith(".")
        assert option.means[0].isupper()
        assert option.kinds


def test_the_howto_names_options_that_there_are(root: Path) -> None:
    words = (root / "docs/howto/spark.md").read_text()
    for name in ("maxRecordsPerTrigger", "onDataLoss", "onDamage", "planLease", "pushdown"):
        assert name in words
        assert name in {option.name for option in READING}


def test_the_howto_of_writing_names_each_option(root: Path) -> None:
    words = (root / "docs/howto/spark-write.md").read_text()
    assert {option.name for option in WRITING if f"`{option.name}`" not in words} == set()
