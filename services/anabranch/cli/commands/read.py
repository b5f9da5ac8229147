"""`anabranch read` and `anabranch tail`."""

import sys

import click

from anabranch.cli.options import log_argument, talks
from anabranch.cli.render.output import Output, number
from anabranch.cli.render.records import Printer, RecordFormat, origins
from anabranch.cli.service import Target
from anabranch.client.aio import Service
from anabranch.client.bolt.log import Log
from anabranch.client.bolt.records import Confirm, Deliver, Event, Fail
from anabranch.core.bolt.protocol.commands import Description

_FORMAT = click.option(
    "--format",
    "form",
    type=click.Choice([each.value for each in RecordFormat]),
    help="Lines of text, JSON lines, or only the values' bytes, each with a newline after it.",
)
_ORIGINS = click.option(
    "--origins", is_flag=True, help="Say of each record which log it was appended to, and where."
)


@click.command()
@log_argument()
@click.option(
    "--from",
    "start",
    type=int,
    help="The first position; -10 is ten before the end. [default: all]",
)
@click.option("--limit", "-n", type=click.IntRange(1), help="Print no more than so many.")
@_FORMAT
@_ORIGINS
@talks
def read(
    *,
    target: Target,
    out: Output,
    log: str,
    start: int | None,
    limit: int | None,
    form: str | None,
    origins: bool,
) -> None:
    """Print the records of a log.

    Those past an undecided promotable fork aren't read: `tail --speculative` shows them.
    """

    async def work(service: Service) -> tuple[Description, int]:
        found = await service.log(log)
        now = found.description
        first = _first(now, start)
        printer = await _printer(service, now, out, form, named=origins)
        printed = 0
        if now.start <= first < now.settled or start is not None:
            async for batch in found.read_batches(first, limit):
                await printer.learn(service, [batch.origin.log])
                printer.records(batch.records())
                printed += batch.count
        return now, first + printed

    now, end = target.run(work)
    if end == now.settled < now.tail and not out.json:
        more = number(now.tail - now.settled)
        print(
            f"{more} more are provisional while {now.undecided} is undecided: "
            f"`anabranch tail {log} --speculative` shows them",
            file=sys.stderr,
        )


@click.command()
@log_argument()
@click.option("--follow", "-f", is_flag=True, help="Go on with what comes, until Ctrl-C.")
@click.option(
    "--number", "-n", "count", type=click.IntRange(0), default=10, show_default=True,
    help="Begin so many records before the end.",
)  # fmt: skip
@click.option(
    "--speculative",
    is_flag=True,
    help="Also what lies past an undecided promotable fork; later it is confirmed or fails.",
)
@_FORMAT
@_ORIGINS
@talks
def tail(
    *,
    target: Target,
    out: Output,
    log: str,
    follow: bool,
    count: int,
    speculative: bool,
    form: str | None,
    origins: bool,
) -> None:
    """Print the last records of a log, and follow it.

    With --speculative, a record that is not final has a ? before it, and lines that say what
    became of such records are between the others.
    """

    async def work(service: Service) -> None:
        found = await service.log(log)
        now = found.description
        printer = await _printer(service, now, out, form, named=origins)
        end = now.tail if speculative else now.settled
        first = max(now.start, end - count)
        if follow or (speculative and now.settled < now.tail):
            upto = None if follow else now.tail
            await _follow(service, found, first, upto, printer, out, speculative=speculative)
        elif first < end:
            async for batch in found.read_batches(first, end - first):
                await printer.learn(service, [batch.origin.log])
                printer.records(batch.records())

    target.run(work)


async def _follow(
    service: Service,
    log: Log,
    first: int,
    upto: int | None,
    printer: Printer,
    out: Output,
    *,
    speculative: bool,
) -> None:
    """Event by event; `upto` ends it where the log ended when it was asked."""
    async with log.subscribe(first, speculative=speculative) as events:
        while upto is None or first < upto:
            coming = await events.take()
            records = [each.record for each in coming if isinstance(each, Deliver)]
            await printer.learn(service, [each.origin_log for each in records])
            for event in coming:
                _print_event(event, printer, out, marked=speculative)
                if isinstance(event, Deliver):
                    first = event.record.position + 1
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


async def _printer(
    service: Service, log: Description, out: Output, form: str | None, *, named: bool
) -> Printer:
    chosen = RecordFormat(form) if form else RecordFormat.JSON if out.json else RecordFormat.TEXT
    needed = named or chosen is RecordFormat.JSON
    return Printer(out, chosen, await origins(service, log) if needed else None)


def _first(log: Description, start: int | None) -> int:
    if start is None:
        return log.start
    return max(log.start, log.settled + start) if start < 0 else start
