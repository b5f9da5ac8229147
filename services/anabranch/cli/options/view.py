"""The options that `read` and `tail` share: which records are printed, and how."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import click

from anabranch.cli.options.filter import Filter
from anabranch.cli.options.service import folded_into
from anabranch.cli.options.values import BYTES, DELIMITER, PATTERN, Point
from anabranch.cli.render.output import Output
from anabranch.cli.render.records import Printer, RecordFormat, origins
from anabranch.client.aio import Service
from anabranch.client.bolt.log import Log
from anabranch.core.bolt.protocol.commands import Description
from anabranch.core.types import MS, Position
from anabranch.shell.runtime.clock import Clock


@dataclass(frozen=True, slots=True)
class View:
    """What is to be seen of a log."""

    filter: Filter
    form: RecordFormat | None
    origins: bool
    delimiter: bytes | None

    async def printer(self, service: Service, log: Description, out: Output) -> Printer:
        usual = RecordFormat.JSON if out.json else RecordFormat.TEXT
        if self.delimiter is not None:
            usual = RecordFormat.RAW
        form = self.form or usual
        needed = self.origins or form is RecordFormat.JSON
        names = await origins(service, log) if needed else None
        return Printer(out, form, names=names, delimiter=self.delimiter)


def views(command: Callable[..., Any]) -> Callable[..., Any]:
    """The command gets `view`."""

    def folded(
        key: bytes | None,
        pattern: re.Pattern[bytes] | None,
        form: str | None,
        origins: bool,
        delimiter: bytes | None,
        **given: Any,
    ) -> Any:
        if delimiter is not None and form not in (None, RecordFormat.RAW):
            raise click.UsageError("-K prints keys, the delimiter and values: leave out --format")
        chosen = RecordFormat(form) if form else None
        view = View(Filter(key, pattern), chosen, origins, delimiter)
        return command(view=view, **given)

    made: Any = folded_into(folded, command)
    for option in reversed(_OPTIONS):
        made = option(made)
    return made


_OPTIONS = (
    click.option("--key", type=BYTES, help="Only records with this key."),
    click.option(
        "--grep",
        "pattern",
        type=PATTERN,
        help="Only records with this regular expression in key, value or the value of a header.",
    ),
    click.option(
        "--format",
        "form",
        type=click.Choice([each.value for each in RecordFormat]),
        help="Lines of text, JSON lines, or only the values' bytes, each with a newline after it.",
    ),
    click.option(
        "--key-delimiter",
        "-K",
        "delimiter",
        type=DELIMITER,
        help="Print key, this delimiter and value, as bytes: what `append -K` takes.",
    ),
    click.option(
        "--origins",
        is_flag=True,
        help="Say of each record which log it was appended to, and where.",
    ),
)


async def first_position(log: Log, start: Point | None) -> Position:
    """Where to begin: nothing that isn't settled lies at a time, or some records before the end."""
    now = log.description
    match start:
        case None:
            return now.start
        case int():
            return max(now.start, now.settled + start) if start < 0 else start
        case timedelta():
            ago_ms = round(start.total_seconds() * 1_000)
            at = await log.position_at(max(0, Clock().now() // MS - ago_ms))
        case _:
            at = await log.position_at(start)
    return max(now.start, min(at, now.settled))
