"""docs/reference/spark.md, written from what the code says of itself.

`python -m anabranch_spark.reference` writes it anew; a test holds the page to it.
"""

from pathlib import Path

from anabranch_spark.options import OPTIONS
from anabranch_spark.source.schema import COLUMNS

PAGE = Path("docs/reference/spark.md")

_HEAD = """# Spark

Written by `python -m anabranch_spark.reference` from `options.py` and `source/schema.py`.
[How to read a log with Spark](../howto/spark.md).

## Options of reading

Names are taken in any case. Unknown ones are refused, and those of a stream in a batch query too.

| option | for | default | |
|---|---|---|---|
"""

_COLUMNS = """
## Columns

`log` comes first if several logs are read.

| column | type |
|---|---|
| `log` | string |
"""


def page() -> str:
    """The whole page."""
    options = "".join(
        f"| `{each.name}` | {', '.join(each.kinds)} | {each.default} | {each.means} |\n"
        for each in OPTIONS
    )
    columns = "".join(f"| `{name}` | {kind} |\n" for name, kind in COLUMNS.items())
    return f"{_HEAD}{options}{_COLUMNS}{columns}"


if __name__ == "__main__":
    PAGE.write_text(page())
