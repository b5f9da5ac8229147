"""docs/reference/spark-expectations.md, written from what the structs say of themselves.

`python -m anabranch_spark.expectations.reference` writes it anew; a test holds the page to it.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast, get_args

import msgspec
from msgspec import NODEFAULT
from msgspec.inspect import Metadata, StructType, type_info

from anabranch_spark.expectations.suite import (
    EXPECTATIONS_MAX,
    AnyExpectation,
    Suite,
    Value,
)
from anabranch_spark.expectations.yaml_tree import BYTES_MAX, DEPTH_MAX

PAGE = Path("docs/reference/spark-expectations.md")

_HEAD = f"""\
# Expectations

Written by `python -m anabranch_spark.expectations.reference` from
`spark-jobs/anabranch_spark/expectations/suite.py`. How to use them in a gate is
[another page](../howto/spark-gate.md).

A file is YAML, of {BYTES_MAX // 1024} KiB and {DEPTH_MAX} levels at most, without tags, anchors and
repeated keys. `no`, `on` and `12:30` are text, as in YAML 1.2. It declares up to
{EXPECTATIONS_MAX} expectations. A Python file sets `SUITE` to an
`anabranch_spark.expectations.Suite` with the same fields; the class is named beside each kind.

Columns are the fields that the value is decoded to, and the struct `record` with all else that a
record has: `record.position`, `record.timestamp`, `record.key`, `record.headers`, `record.origin`
and `record.origin_position`. Binary columns are compared as text.

All is asked of the fork's own records that parse; `values parse`, which each report has first, is
asked of all. A record without a value misses what is asked of that value, unless `nulls: pass` says
otherwise; NaN lies in no range. A fork without records of its own passes all but `row_count` and
`freshness`.
"""


def page() -> str:
    """The whole page."""
    return _HEAD + "".join(_sections())


def _sections() -> Iterator[str]:
    yield "\n## The file\n" + _table(Suite)
    yield "\n## `value`: how values are decoded\n"
    for kind in get_args(Value):
        yield f"\n### `format: {_tag(kind)}`\n\n{_prose(kind)} `{kind.__name__}`\n" + _table(kind)
    yield "\n## Kinds of expectations\n"
    for kind in get_args(AnyExpectation):
        yield f"\n### `expect: {_tag(kind)}`\n\n{_prose(kind)} `{kind.__name__}`\n" + _table(kind)


def _tag(kind: Any) -> str:
    return str(kind.__struct_config__.tag)


def _prose(kind: type) -> str:
    return " ".join((kind.__doc__ or "").split())


def _table(kind: type[msgspec.Struct]) -> str:
    info = type_info(kind)
    assert isinstance(info, StructType)
    rows = "".join(
        f"| `{each.encode_name}` | {_default(each.default)} | {_described(each.type)} |\n"
        for each in sorted(info.fields, key=lambda each: not each.required)
    )
    return "\n| key | default | |\n|---|---|---|\n" + rows


def _default(value: Any) -> str:
    if value is NODEFAULT:
        return "must be given"
    if value is None or value == ():
        return "none"
    return f"`{value:g}`" if isinstance(value, float) else f"`{value}`"


def _described(kind: Any) -> str:
    """The description, and which words or numbers are allowed where that is known."""
    said = ""
    bare = kind
    while isinstance(bare, Metadata):
        said = said or str(
            cast("dict[str, Any]", bare.extra_json_schema or {}).get("description", "")
        )
        bare = bare.type
    allowed = _allowed(bare)
    return " ".join(part for part in (said, allowed) if part)


def _allowed(kind: Any) -> str:
    values = getattr(kind, "values", None)
    if values is not None:
        return "One of " + ", ".join(f"`{value}`" for value in values) + "."
    low, high = getattr(kind, "ge", None), getattr(kind, "le", None)
    if low is not None and high is not None and high <= 1_000_000:
        return f"From {low} to {high:,}."
    return ""


def main() -> None:
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
