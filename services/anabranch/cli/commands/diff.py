"""`anabranch diff` and `anabranch sum`: where two logs part and what only one of them has, and a
sum by which copies of a log are compared.
"""

import sys
from typing import Any

import click

from anabranch.cli.options.service import log_argument, talks
from anabranch.cli.render.output import Output
from anabranch.cli.render.records import Printer, RecordFormat, origins
from anabranch.cli.render.words import counted, number
from anabranch.cli.service.target import Target
from anabranch.client.aio import Service
from anabranch.client.bolt.log import Log
from anabranch.client.session.records import LogRecord
from anabranch.core.bolt.protocol.queries import Comparison
from anabranch.core.bolt.protocol.set_sums import SetSum

Range = tuple[int, int]

_RANGES_SHOWN_MAX = 10
"""Ranges that are printed, of those that aren't summed."""


@click.command()
@log_argument("a")
@log_argument("b")
@click.option(
    "--limit",
    "-n",
    type=click.IntRange(0),
    default=10,
    show_default=True,
    help="Print no more than so many records of each.",
)
@talks
def diff(target: Target, out: Output, a: str, b: str, limit: int) -> None:
    """Show where two logs part, and what only one of them has.

    Only settled records are compared: by identity, not by what is in them. Where one of the logs
    was trimmed, records that it may have had are said to be not comparable.
    """

    async def work(
        service: Service,
    ) -> tuple[Comparison, list[LogRecord], list[LogRecord], Printer]:
        one, other = await service.log(a, engine="bolt"), await service.log(b, engine="bolt")
        for each in (one.description, other.description):
            if each.undecided and not out.json:
                what = f"{each.name} is compared below position {each.settled}"
                print(f"{what}: {each.undecided} is undecided", file=sys.stderr)
        found = await one.diff(other)
        names = await origins(service, one.description)
        if other.description.root != one.description.root:
            names |= await origins(service, other.description)
        printer = Printer(out, RecordFormat.TEXT, names=names)
        mine = await _first_of(one, found.only_a, limit)
        theirs = await _first_of(other, found.only_b, limit)
        await printer.learn(service, [each.origin_log for each in (*mine, *theirs)])
        return found, mine, theirs, printer

    found, mine, theirs, printer = target.run(work)
    if out.json:
        out.document(
            {
                "since": found.since,
                "shared": found.shared,
                "complete": found.complete,
                "a": _side(a, found.only_a, found.trimmed_a, mine, printer),
                "b": _side(b, found.only_b, found.trimmed_b, theirs, printer),
            }
        )
        return
    _say_shared(out, found)
    _say(out, a, found.only_a, mine, printer)
    _say(out, b, found.only_b, theirs, printer)
    _say_trimmed(out, a, found.trimmed_a, b)
    _say_trimmed(out, b, found.trimmed_b, a)
    if not found.complete:
        what = "what a severed fork took over from its lost parent"
        out.say(f"there is more: {what} is compared with all at once, and that is too long")


async def _first_of(log: Log, ranges: list[Range], limit: int) -> list[LogRecord]:
    records: list[LogRecord] = []
    for start, end in ranges:
        count = min(end - start, limit - len(records))
        if count <= 0:
            break
        records += [each async for each in log.read(start, count)]
    return records


def _count(ranges: list[Range]) -> int:
    return sum(end - start for start, end in ranges)


def _side(
    name: str,
    ranges: list[Range],
    trimmed: list[Range],
    records: list[LogRecord],
    printer: Printer,
) -> dict[str, Any]:
    return {
        "log": name,
        "records": _count(ranges),
        "ranges": ranges,
        "not_comparable": trimmed,
        "first": [printer.document(each) for each in records],
    }


def _say_shared(out: Output, found: Comparison) -> None:
    end = f"up to position {found.shared} (not included)"
    since = f"from position {found.since} on, where the log that was trimmed begins"
    if found.shared > found.since:
        out.say(f"the same {since}, {end}" if found.since else f"the same {end}")
    else:
        out.say(f"nothing in common {since if found.since else 'at the beginning'}")


def _say_trimmed(out: Output, name: str, ranges: list[Range], other: str) -> None:
    if ranges:
        what = f"{counted(_count(ranges), 'record')} of {name}"
        out.say(f"not comparable: {what}, which {other} may have had and trimmed")


def _say(
    out: Output, name: str, ranges: list[Range], records: list[LogRecord], printer: Printer
) -> None:
    count = _count(ranges)
    runs = f" in {number(len(ranges))} runs" if len(ranges) > 1 else ""
    out.say(f"only in {name}: {counted(count, 'record')}{runs}")
    for each in records:
        out.say(f"  {printer.text(each)}")
    if len(records) < count:
        out.say(f"  ... and {number(count - len(records))} more")


@click.command(name="sum")
@log_argument()
@click.option(
    "--from",
    "start",
    type=click.IntRange(0),
    help="First position of the range; by default where the log begins.",
)
@click.option(
    "--to",
    "end",
    type=click.IntRange(0),
    help="Position after the range's last; by default the settled end.",
)
@talks
def set_sum(target: Target, out: Output, log: str, start: int | None, end: int | None) -> None:
    """Print the sum that the service keeps of a range's batches.

    An audit computes the same from the batches, in any order. Batches that the
    range cuts, or that were committed before sums were kept, aren't in it: their ranges are named.
    """

    async def work(service: Service) -> SetSum:
        return await (await service.log(log, engine="bolt")).set_sum(start, end)

    found = target.run(work)
    if out.json:
        out.document(
            {
                "log": log,
                "from": found.start,
                "to": found.end,
                "sum": found.sum,
                "records": found.records,
                "summed": found.summed,
                "not_summed": found.unsummed,
            }
        )
        return
    of = f"{counted(found.summed, 'record')} of positions {found.start}..{found.end}"
    out.say(f"{found.sum:08x} of {of} (end not included)")
    for first, after in found.unsummed[:_RANGES_SHOWN_MAX]:
        out.say(f"not summed: positions {first}..{after}")
    if len(found.unsummed) > _RANGES_SHOWN_MAX:
        out.say(f"not summed: {number(len(found.unsummed) - _RANGES_SHOWN_MAX)} more ranges")
