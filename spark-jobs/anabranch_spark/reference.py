"""docs/reference/spark.md, written from what the code says of itself.

`python -m anabranch_spark.reference` writes it anew; a test holds the page to it.
"""

from pathlib import Path

from anabranch_spark.option_table import READING, WRITING, Option
from anabranch_spark.source.schema import COLUMNS

PAGE = Path("docs/reference/spark.md")

_HEAD = """# Spark

Written by `python -m anabranch_spark.reference` from `option_table.py` and
`source/schema.py`. [How to read a log with Spark](../howto/spark.md), and
[how to write one](../howto/spark-write.md).

Names of options are taken in any case. Unknown ones are refused, and those of a stream in a batch
query too.

## Options of reading

"""
_TABLE = "| option | for | default | |\n|---|---|---|---|\n"

_WRITING = """
## Options of writing

"""

_COLUMNS = """
## Columns of a log that is read

Columns of a frame that is written are [on another page](../howto/spark-write.md#columns).
`log` comes first if several logs are read.

| column | type |
|---|---|
| `log` | string |
"""


def page() -> str:
    """The whole page."""
    columns = "".join(f"| `{name}` | {kind} |\n" for name, kind in COLUMNS.items())
    return f"{_HEAD}{_rows(READING)}{_WRITING}{_rows(WRITING)}{_COLUMNS}{columns}"


def _rows(options: tuple[Option, ...]) -> str:
    return _TABLE + "".join(
        f"| `{each.name}` | {', '.join(each.kinds)} | {each.default} | {each.means} |\n"
        for each in options
    )


if __name__ == "__main__":
    PAGE.write_text(page())
