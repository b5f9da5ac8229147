"""The options that `read` and `tail` share: which records are printed, and how."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import click

from anabranch.cli.options.filter import Filter
from anabranch.cli.options.service import folded_into
from anabranch.cli.options.values import BYTES, DELIMITER, PATTERN, Point
from anabranch.cli.render.output import Output
from anabranch.cli.render.records import Printer, RecordFormat, origins
from anabranch.client.aio import Service
from anabranch.client.engines import Bounds, is_bolt
from anabranch.client.logs import AsyncLog
from anabranch.core.errors import BadRequest
from anabranch.core.types import MS, Position
from anabranch.shell.runtime.clock import Clock


@dataclass(frozen=True, slots=True)
class View:
    """Which records of a log are printed, and how."""

    filter: Filter
    form: RecordFormat | None
    origins: bool
    delimiter: bytes | None

    async def printer(self, service: Service, log: AsyncLog, out: Output) -> Printer:
        usual = RecordFormat.JSON if out.json else RecordFormat.TEXT
        if self.delimiter is not None:
            usual = RecordFormat.RAW
        form = self.form or usual
        needed = (self.origins or form is RecordFormat.JSON) and is_bolt(log)
        names = await origins(service, log.description) if needed else None
        return Printer(out, form, names=names, shards=self.origins, delimiter=self.delimiter)


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


async def first_position(log: AsyncLog, now: Bounds, start: Point | None) -> Position:
    """The position to begin at; a time and a number from the end lead to settled records only."""
    moment: datetime | int
    match start:
        case None:
            return now.start
        case int():
            return max(now.start, now.settled + start) if start < 0 else start
        case timedelta():
            moment = max(0, Clock().now() // MS - round(start.total_seconds() * 1_000))
        case _:
            moment = start
    if not is_bolt(log):
        reason = f"a log of the {log.engine} engine doesn't keep when records came: give a position"
        raise BadRequest(f"a time to begin at in {log.name}", reason)
    return max(now.start, min(await log.position_at(moment), now.settled))
