"""`anabranch tail`: the last records of a log, and what comes after them."""

import sys

import click

from anabranch.cli.options.service import log_argument, talks
from anabranch.cli.options.values import START, Point
from anabranch.cli.options.view import View, first_position, views
from anabranch.cli.render.output import Output
from anabranch.cli.render.records import Printer
from anabranch.cli.service.target import Target
from anabranch.client.aio import Service
from anabranch.client.engines import bounds_of, last_position, portions_of
from anabranch.client.logs import AsyncLog
from anabranch.client.session.records import Confirm, Deliver, Event, Fail


@click.command()
@log_argument()
@click.option("--follow", "-f", is_flag=True, help="Go on with what comes, until Ctrl-C.")
@click.option(
    "--number", "-n", "count", type=click.IntRange(0), default=10, show_default=True,
    help="Begin so many records before the end.",
)  # fmt: skip
@click.option(
    "--from",
    "start",
    type=START,
    help="Begin at this position or time instead: 1234, 2026-01-31T12:00:00Z, -10m.",
)
@click.option(
    "--speculative",
    is_flag=True,
    help="Also what isn't final yet; later it is confirmed or fails.",
)
@views
@talks
def tail(
    *,
    target: Target,
    out: Output,
    log: str,
    follow: bool,
    count: int,
    start: Point | None,
    speculative: bool,
    view: View,
) -> None:
    """Print the last records of a log; with -f, go on with what comes.

    With --speculative, a record that is not final has a ? before it, and lines that say what
    became of such records are between the others: past an undecided promotable fork, or where a
    Belfast log's order is only predicted.
    """

    async def work(service: Service) -> None:
        found = await service.log(log)
        now = await bounds_of(found)
        printer = await view.printer(service, found, out)
        end = now.tail if speculative else now.settled
        if start is not None:
            first = await first_position(found, now, start)
        else:
            first = await last_position(found, now._replace(tail=end), count)
        if follow or (speculative and now.settled < now.tail):
            upto = None if follow else now.tail
            await _follow(service, found, first, upto, view, printer, out, speculative=speculative)
        elif first < end:
            async for records in portions_of(found, first, end - first):
                await printer.learn(service, [each.origin_log for each in records])
                printer.records(view.filter.choose(records))

    target.run(work)


async def _follow(
    service: Service,
    log: AsyncLog,
    first: int,
    upto: int | None,
    view: View,
    printer: Printer,
    out: Output,
    *,
    speculative: bool,
) -> None:
    """Print events as they come; `upto` stops at the position where the log ended at first."""
    async with log.subscribe(first, speculative=speculative) as events:
        while upto is None or first < upto:
            coming = await events.take()
            records = [each.record for each in coming if isinstance(each, Deliver)]
            await printer.learn(service, [each.origin_log for each in records])
            for event in coming:
                if isinstance(event, Deliver):
                    first = event.record.position + 1
                    if not view.filter.passes(event.record):
                        continue
                _print_event(event, printer, out, marked=speculative)
            sys.stdout.flush()


def _print_event(event: Event, printer: Printer, out: Output, *, marked: bool) -> None:
    if not marked:
        if isinstance(event, Deliver):
            printer.records([event.record])
        return
    match event:
        case Deliver(record, speculative) if printer.json:
            out.line({"event": "deliver", "speculative": speculative, **printer.document(record)})
        case Confirm(up_to) if printer.json:
            out.line({"event": "confirm", "up_to": up_to})
        case Fail(since) if printer.json:
            out.line({"event": "fail", "since": since})
        case Deliver(record, speculative):
            print(f"{'?' if speculative else ' '} {printer.text(record)}")
        case Confirm(up_to):
            print(f"  -- final below {up_to}")
        case Fail(since):
            print(f"  -- forget what stood from {since} on")
