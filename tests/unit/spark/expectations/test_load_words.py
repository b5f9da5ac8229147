"""A mistake in a file of expectations is said in words, and not in those of a library."""

import pytest

from anabranch.errors import BadRequest
from anabranch_spark.expectations import parsed

FILE = """\
version: {version}
value: {{format: json, schema: "price double"}}
expectations: {expectations}
"""


def said(expectations: str, version: str = "1") -> str:
    with pytest.raises(BadRequest) as refused:
        parsed(FILE.format(version=version, expectations=expectations).encode(), "a.yaml")
    return refused.value.message


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("row_count, min: one", "min): it must be a whole number, and is text"),
        ("not_null, column: price, at_least: 99", "at_least): it must be at most 1.0"),
        ("freshness, within: 6 hours", "within): it must be a length of time such as 90s"),
        ("not_null, column: [price]", "column): it must be text, and is a list"),
        ("in, column: price, values: []", "values): it must have at least 1 entries"),
    ],
)
def test_a_wrong_value_is_said_in_words(kind: str, words: str) -> None:
    assert words in said(f"[{{name: a, expect: {kind}}}]")


def test_a_file_without_expectations_or_of_another_version_is_refused() -> None:
    assert "it must have at least 1 entries" in said("[]")
    assert "(version): it can't be 2" in said("[{name: a, expect: row_count, min: 1}]", "2")
