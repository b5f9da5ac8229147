"""What a command prints: tables for people, JSON for programs, progress on anything longer.

On a terminal with colours and frames; elsewhere plain, as wide as it needs to be.
"""

import sys
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any, TextIO

import msgspec

from anabranch.core.types import Milliseconds

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.progress import Progress
    from rich.table import Table

_PLAIN_WIDTH = 10_000
_PATIENCE_S = 1.0
"""Work that is done by then needs no progress bar."""


class OutputFormat(StrEnum):
    TABLE = "table"
    JSON = "json"


class Output:
    """Where a command's results go. In JSON one document, or one a line where there are many."""

    def __init__(self, form: OutputFormat = OutputFormat.TABLE) -> None:
        self.json = form is OutputFormat.JSON
        self._console: Console | None = None

    @property
    def console(self) -> "Console":
        if self._console is None:
            self._console = console(sys.stdout)
        return self._console

    def document(self, value: Any) -> None:
        """One JSON document: indented for a person who looks, on one line in a pipe."""
        encoded = msgspec.json.encode(value)
        if sys.stdout.isatty():
            encoded = msgspec.json.format(encoded, indent=2)
        print(encoded.decode())

    def line(self, value: Any) -> None:
        """One of many JSON documents."""
        print(msgspec.json.encode(value).decode())

    def lines(self, values: Iterable[Any]) -> None:
        """Many at once, in one write."""
        encoded = [msgspec.json.encode(value) for value in values]
        sys.stdout.write(b"\n".join([*encoded, b""]).decode())

    def say(self, text: str) -> None:
        """A line for people; `text` may hold what a stranger wrote."""
        if not self.json:
            print(printable(text))

    def show(self, picture: "RenderableType") -> None:
        self.console.print(picture)

    def table(self, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
        """A column whose head begins with `>` is aligned right."""
        cells = [[printable(cell) for cell in row] for row in rows]
        if sys.stdout.isatty():
            self.show(_framed(columns, cells))
            return
        heads = [[head.removeprefix(">") for head in columns]] if any(columns) else []
        widths = [max(map(len, column), default=0) for column in zip(*heads, *cells, strict=True)]
        for row in (*heads, *cells):
            aligned = (
                cell.rjust(width) if head.startswith(">") else cell.ljust(width)
                for cell, width, head in zip(row, widths, columns, strict=True)
            )
            print("  ".join(aligned).rstrip())

    @contextmanager
    def progress(self, what: str, total: float | None, unit: str = "records") -> "Generator[Meter]":
        """A bar on stderr with rate and remaining time, if it is a terminal and this takes long."""
        meter = Meter(what, total, unit, shown=sys.stderr.isatty())
        try:
            yield meter
        finally:
            meter.close()


class Meter:
    """How far a piece of work is."""

    def __init__(self, what: str, total: float | None, unit: str, *, shown: bool) -> None:
        from anabranch.shell.runtime.clock import Clock

        self._what, self._total, self._unit, self._shown = what, total, unit, shown
        self._now = Clock().now
        self._began = self._now()
        self._done = 0.0
        self._bar: Progress | None = None

    @property
    def elapsed_s(self) -> float:
        return (self._now() - self._began) / 1e9

    def advance(self, by: float) -> None:
        self.reach(self._done + by)

    def reach(self, done: float, total: float | None = None, pace: str | None = None) -> None:
        """`pace` says the rate in other words than units a second."""
        self._done = done
        self._total = self._total if total is None else total
        if not self._shown or (self._bar is None and self.elapsed_s < _PATIENCE_S):
            return
        if self._bar is None:
            self._bar = self._begin()
        if pace is None:
            rate = done / max(self.elapsed_s, 1e-9)
            pace = f"{size(rate)}/s" if self._unit == "bytes" else f"{number(rate)} {self._unit}/s"
        task = self._bar.task_ids[0]
        self._bar.update(task, completed=done, total=self._total, pace=pace)

    def close(self) -> None:
        if self._bar is not None:
            self._bar.stop()

    def _begin(self) -> "Progress":
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn
        from rich.progress import TimeRemainingColumn as Remaining

        bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TaskProgressColumn(),
            TextColumn("{task.fields[pace]}"),
            Remaining(),
            console=console(sys.stderr),
            transient=True,
        )
        bar.add_task(self._what, total=self._total, pace="")
        bar.start()
        return bar


def _framed(columns: Sequence[str], cells: Iterable[Sequence[str]]) -> "Table":
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold", show_header=any(columns))
    for head in columns:
        table.add_column(
            head.removeprefix(">"), justify="right" if head.startswith(">") else "left"
        )
    for row in cells:
        table.add_row(*map(Text, row))
    return table


def console(stream: TextIO) -> "Console":
    from rich.console import Console

    width = None if stream.isatty() else _PLAIN_WIDTH
    return Console(file=stream, width=width, highlight=False, markup=False, emoji=False)


def printable(text: str) -> str:
    """Nothing in it moves the cursor or colours the screen: names and values are strangers'."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def shown(value: bytes | None) -> str:
    """A key or value on one line; bytes that aren't text are escaped."""
    if value is None:
        return "-"
    return printable(value.decode("utf-8", errors="backslashreplace"))


def size(count: float) -> str:
    """`1.5 MiB`."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} TiB"


def number(count: float) -> str:
    """A count or a rate, with separators only where a person looks at a terminal.

    Never for a position or an id, which is typed back as it was printed.
    """
    whole = count if isinstance(count, int) else round(count)
    return f"{whole:,}" if sys.stdout.isatty() else str(whole)


def counted(count: int, what: str) -> str:
    """`1 record`, `2000 records`; on a terminal `2,000 records`."""
    return f"{number(count)} {what}" + "s" * (count != 1)


def duration(seconds: float) -> str:
    """Two digits that matter: `340 us`, `2.1 ms`, `1.4 s`, `3 m 20 s`, `2 h 5 m`, `4 d 2 h`."""
    if seconds < 1e-3:
        return f"{seconds * 1e6:.0f} us"
    if seconds < 1:
        return f"{seconds * 1e3:.3g} ms"
    if seconds < 60:
        return f"{seconds:.3g} s"
    whole = round(seconds)
    for large, small, unit, part in (
        (60, 1, "m", "s"),
        (3_600, 60, "h", "m"),
        (86_400, 3_600, "d", "h"),
    ):
        if whole < large * (24 if unit == "h" else 60) or unit == "d":
            rest = whole % large // small
            return f"{whole // large} {unit}" + (f" {rest} {part}" if rest else "")
    raise AssertionError("days have no end")


def moment(at: Milliseconds) -> str:
    """For programs: RFC 3339 in UTC."""
    stamp = datetime.fromtimestamp(at / 1_000, UTC)
    return stamp.isoformat(timespec="milliseconds").replace("+00:00", "Z")
