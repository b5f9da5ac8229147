"""`anabranch status` and `top`: how a log of any engine is doing."""

import asyncio
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any

import click

from anabranch.cli.options.service import log_argument, talks
from anabranch.cli.options.values import DURATION
from anabranch.cli.render import belfast, erwin
from anabranch.cli.render.descriptions import document, held_by, kind, rows_of
from anabranch.cli.render.output import Output
from anabranch.cli.render.rates import LogRates
from anabranch.cli.render.words import number
from anabranch.cli.service.engines import Bounds, bounds_of, is_belfast, is_bolt, is_erwin
from anabranch.cli.service.target import Target
from anabranch.client.aio import Service
from anabranch.client.logs import AsyncLog
from anabranch.core.belfast.protocol.messages import Status
from anabranch.core.bolt.protocol.commands import Description
from anabranch.core.sequencing.messages import SequencingStatus
from anabranch.shell.runtime.clock import Clock

Seen = Status | SequencingStatus
"""What the machines of another engine's log say of it."""

_LOGS_MAX = 1_000
"""Rates are shown of so many logs; more don't fit on a screen, and are asked for by name."""


@click.command()
@log_argument()
@talks
def status(target: Target, out: Output, log: str) -> None:
    """Show what a log or fork is, and how the shards of a Belfast or Erwin log do."""
    show_status(target, out, log)


def show_status(target: Target, out: Output, log: str, *, live: bool = True) -> None:
    """Print all about a log. `live`: ask the machines of another engine's log, too."""

    async def work(service: Service) -> tuple[Description, dict[str, int], Seen | None]:
        found = await service.log(log)
        if is_belfast(found) or is_erwin(found):
            return found.description, {}, await found.status() if live else None
        cursors = await found.cursors() if is_bolt(found) else {}
        return found.description, cursors, None

    found, cursors, seen = target.run(work)
    if seen is None:
        if out.json:
            out.document({**document(found), "cursors": cursors})
        else:
            out.table(["", ""], rows_of(found, cursors, Clock().now()))
        return
    tables = _tables(seen)
    if out.json:
        out.document({**document(found), "status": tables.document(seen)})
        return
    out.table(["", ""], rows_of(found, cursors, Clock().now()))
    out.say("")
    out.table(tables.OVERVIEW, tables.overview(seen))
    out.say("")
    out.table(tables.SHARDS, tables.shards(seen))
    expected = 0 if found.settings is None else found.settings.shards
    for each in tables.notes(seen, expected):
        out.say(each)


def _tables(seen: Seen) -> Any:
    """The module that shows such a log."""
    return erwin if isinstance(seen, SequencingStatus) else belfast


@click.command()
@click.argument("log", required=False)
@click.option(
    "--interval", type=DURATION, default="1s", show_default=True, help="The time between two looks."
)
@click.option("--count", type=click.IntRange(1), help="End after this many looks.")
@talks
def top(target: Target, out: Output, log: str | None, interval: float, count: int | None) -> None:
    """Show how fast logs grow, live, until Ctrl-C.

    Of a log and its forks, or of all logs; of a Belfast or Erwin log, shard by shard.
    """

    async def work(service: Service) -> None:
        found = None if log is None else await service.log(log)
        if found is not None and (is_belfast(found) or is_erwin(found)):
            await _watch_shards(found.status, out, _looks(interval, count))
        else:
            tree = None if found is None else found.description.root
            await _watch_logs(service, tree, out, _looks(interval, count))

    target.run(work)


async def _watch_shards(
    look: Callable[[], Awaitable[Seen]], out: Output, looks: AsyncGenerator[float]
) -> None:
    rates: Any = None
    async for now_s in looks:
        found = await look()
        tables = _tables(found)
        rates = rates or tables.Rates()
        if out.json:
            out.line(tables.document(found))
            continue
        _clear()
        out.table(tables.OVERVIEW, tables.overview(found))
        out.say("")
        out.table(rates.columns, rates.rows(found, now_s))


async def _watch_logs(
    service: Service, tree: str | None, out: Output, looks: AsyncGenerator[float]
) -> None:
    rates = LogRates()
    async for now_s in looks:
        seen = [await _bounds(service, each) async for each in _some(service, tree)]
        rated = list(rates.step(seen, now_s))
        if out.json:
            for each in rated:
                out.line(each.document())
            continue
        _clear()
        out.table(
            ["NAME", "KIND", ">RECORDS/s", ">TAIL", "HELD UP"],
            (
                (
                    each.log.name,
                    kind(each.log),
                    "-" if each.records_per_s is None else number(each.records_per_s),
                    str(each.tail),
                    held_by(each.log),
                )
                for each in rated
            ),
        )


async def _some(service: Service, tree: str | None) -> AsyncGenerator[Description]:
    count = 0
    async for each in service.logs(tree=tree):
        count += 1
        if count > _LOGS_MAX:
            return
        yield each


async def _bounds(service: Service, log: Description) -> tuple[Description, Bounds]:
    if log.engine == "bolt":
        return log, Bounds(log.start, log.settled, log.tail, log.undecided or "")
    found: AsyncLog = await service.log(log.id)
    return log, await bounds_of(found)


async def _looks(interval: float, count: int | None) -> AsyncGenerator[float]:
    """Yield the time of each look, in seconds of the loop's clock."""
    looked = 0
    while count is None or looked < count:
        if looked:
            # A program that reads from a pipe gets each look when it is taken.
            sys.stdout.flush()
            await asyncio.sleep(interval)
        looked += 1
        yield asyncio.get_running_loop().time()


def _clear() -> None:
    if sys.stdout.isatty():
        click.clear()
