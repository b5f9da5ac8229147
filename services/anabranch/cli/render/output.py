"""What a command prints: tables for people, JSON for programs, progress on anything longer.

On a terminal with colours; elsewhere plain, as wide as it needs to be.
"""

import shutil
import sys
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Any

import click
import msgspec

from anabranch.cli.render.tables import rows_of_text
from anabranch.cli.render.words import printable

if TYPE_CHECKING:
    from rich.text import Text

    from anabranch.cli.render.progress import Meter


class OutputFormat(StrEnum):
    TABLE = "table"
    JSON = "json"


class Output:
    """Prints a command's results. In JSON one document, or one a line where there are many."""

    def __init__(self, form: OutputFormat = OutputFormat.TABLE) -> None:
        self.json = form is OutputFormat.JSON

    def document(self, value: Any) -> None:
        """Print one JSON document: indented for a person who looks, on one line in a pipe."""
        encoded = msgspec.json.encode(value)
        if sys.stdout.isatty():
            encoded = msgspec.json.format(encoded, indent=2)
        print(encoded.decode())

    def line(self, value: Any) -> None:
        """Print one of many JSON documents, on a line."""
        print(msgspec.json.encode(value).decode())

    def lines(self, values: Iterable[Any]) -> None:
        """Print many JSON documents in one write."""
        encoded = [msgspec.json.encode(value) for value in values]
        sys.stdout.write(b"\n".join([*encoded, b""]).decode())

    def say(self, text: str) -> None:
        """Print a line for people; `text` may hold what a stranger wrote."""
        if not self.json:
            print(printable(text))

    def draw(self, lines: "Iterable[Text]") -> None:
        """Print lines with colours; the terminal wraps those that are wider than it is."""
        from anabranch.cli.render.progress import console

        onto = console(sys.stdout)
        for line in lines:
            onto.print(line, soft_wrap=True)

    def table(self, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
        """Print a table. A column whose head begins with `>` is aligned right."""
        cells = [[printable(cell) for cell in row] for row in rows]
        terminal = sys.stdout.isatty()
        width = shutil.get_terminal_size().columns if terminal else None
        style = partial(click.style, bold=True) if terminal else str
        for line in rows_of_text(columns, cells, width=width, head_style=style):
            print(line)

    @contextmanager
    def progress(self, what: str, total: float | None, unit: str = "records") -> "Generator[Meter]":
        """A bar on stderr with rate and remaining time, if it is a terminal and this takes long."""
        from anabranch.cli.render.progress import Meter

        meter = Meter(what, total, unit, shown=sys.stderr.isatty())
        try:
            yield meter
        finally:
            meter.close()
