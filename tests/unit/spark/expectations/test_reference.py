"""The page of expectations names every kind, every key and every format."""

from typing import get_args

from anabranch_spark.expectations.reference import page
from anabranch_spark.expectations.suite import AnyExpectation, Suite, Value


def test_every_kind_and_every_key_is_described() -> None:
    sections = page().split("\n#")
    kinds = {str(each.__struct_config__.tag): each for each in get_args(AnyExpectation)}
    for tag, kind in kinds.items():
        section = next(part for part in sections if f"expect: {tag}`" in part)
        assert kind.__name__ in section
        for key in kind.__struct_encode_fields__:
            assert f"| `{key}` |" in section, (tag, key)
    for kind in get_args(Value):
        assert f"format: {kind.__struct_config__.tag}`" in page()
    for key in Suite.__struct_encode_fields__:
        assert f"| `{key}` |" in sections[1]


def test_no_key_is_without_its_meaning() -> None:
    rows = [line for line in page().splitlines() if line.startswith("| `")]
    assert len(rows) > 30
    assert [row for row in rows if row.endswith("|  |")] == []
