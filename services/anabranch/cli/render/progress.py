"""Progress of work that takes longer than a moment, on stderr."""

import sys
from typing import TYPE_CHECKING, TextIO

from anabranch.cli.render.words import number, size
from anabranch.shell.runtime.clock import Clock

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress

_PLAIN_WIDTH = 10_000
_PATIENCE_S = 1.0
"""Work that is done by then needs no progress bar."""


class Meter:
    """How far a piece of work is."""

    def __init__(self, what: str, total: float | None, unit: str, *, shown: bool) -> None:
        self._what, self._total, self._unit, self._shown = what, total, unit, shown
        self._now = Clock().now
        self._started = self._now()
        self._done = 0.0
        self._bar: Progress | None = None

    @property
    def elapsed_s(self) -> float:
        return (self._now() - self._started) / 1e9

    def advance(self, by: float) -> None:
        self.reach(self._done + by)

    def reach(self, done: float, total: float | None = None, pace: str | None = None) -> None:
        """`pace` says the rate in other words than units a second."""
        self._done = done
        self._total = self._total if total is None else total
        if not self._shown or (self._bar is None and self.elapsed_s < _PATIENCE_S):
            return
        if self._bar is None:
            self._bar = self._start()
        if pace is None:
            rate = done / max(self.elapsed_s, 1e-9)
            pace = f"{size(rate)}/s" if self._unit == "bytes" else f"{number(rate)} {self._unit}/s"
        task = self._bar.task_ids[0]
        self._bar.update(task, completed=done, total=self._total, pace=pace)

    def close(self) -> None:
        if self._bar is not None:
            self._bar.stop()

    def _start(self) -> "Progress":
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


def console(stream: TextIO) -> "Console":
    from rich.console import Console

    width = None if stream.isatty() else _PLAIN_WIDTH
    return Console(file=stream, width=width, highlight=False, markup=False, emoji=False)
