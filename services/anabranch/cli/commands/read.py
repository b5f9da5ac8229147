"""`anabranch read`: the records of a log from a position or a time on."""

import sys
from itertools import islice

import click

from anabranch.cli.options.service import log_argument, talks
from anabranch.cli.options.values import START, Point
from anabranch.cli.options.view import View, first_position, views
from anabranch.cli.render.output import Output
from anabranch.cli.render.records import Printer
from anabranch.cli.render.words import counted
from anabranch.cli.service.target import Target
from anabranch.client.aio import Service
from anabranch.client.engines import Bounds, bounds_of, portions_of
from anabranch.client.logs import AsyncLog
from anabranch.core.types import Position


@click.command()
@log_argument()
@click.option(
    "--from",
    "start",
    type=START,
    help="The first position, or a time: 1234, -10 (ten before the end), 2026-01-31T12:00:00Z, "
    "-10m (ten minutes ago). [default: all]",
)
@click.option("--limit", "-n", type=click.IntRange(1), help="Print no more than so many.")
@views
@talks
def read(
    *, target: Target, out: Output, log: str, start: Point | None, limit: int | None, view: View
) -> None:
    """Print the records of a log.

    Those past an undecided promotable fork aren't read: `anabranch tail --speculative` shows them.

    \b
    anabranch read orders --from -1h --grep 'apples|pears'
    anabranch read orders --from 2026-01-31T12:00:00Z -n 10 -o json
    anabranch read orders --key eve -K:
    """  # noqa: D301  # click wants the character itself

    async def work(service: Service) -> tuple[Bounds, Position]:
        found = await service.log(log)
        now = await bounds_of(found)
        first = await first_position(found, now, start)
        printer = await view.printer(service, found, out)
        if not now.start <= first < now.settled and start is None:
            return now, first
        return now, await _print(service, found, first, limit, view, printer)

    now, end = target.run(work)
    if now.undecided and end == now.settled < now.tail and not out.json:
        hidden = counted(now.tail - now.settled, "provisional record")
        print(
            f"not shown: {hidden}, while {now.undecided} is undecided; "
            f"`anabranch tail {log} --speculative` shows such records",
            file=sys.stderr,
        )


async def _print(
    service: Service,
    log: AsyncLog,
    first: Position,
    limit: int | None,
    view: View,
    printer: Printer,
) -> Position:
    """Print what the view shows, `limit` records at most; returns where it ended."""
    left = sys.maxsize if limit is None else limit
    async for records in portions_of(log, first, limit if view.filter.passes_all else None):
        first = records[-1].position + 1 if records else first
        chosen = list(islice(view.filter.choose(records), left))
        if chosen:
            await printer.learn(service, [each.origin_log for each in chosen])
            printer.records(chosen)
        left -= len(chosen)
        if not left:
            break
    return first
