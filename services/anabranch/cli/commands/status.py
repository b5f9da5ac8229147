"""`anabranch status` and `top`: how a log of any engine is doing."""

import asyncio
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any

import click

from anabranch.cli.options.service import log_argument, talks
from anabranch.cli.options.values import DURATION
from anabranch.cli.render import belfast, erwin, lazy
from anabranch.cli.render.descriptions import document, held_by, kind, rows_of
from anabranch.cli.render.output import Output
from anabranch.cli.render.rates import LogRates, Look
from anabranch.cli.render.words import number
from anabranch.cli.service.target import Target
from anabranch.client.aio import Service
from anabranch.client.engines import bounds_of, is_belfast, is_bolt, is_erwin, is_lazy
from anabranch.client.logs import AsyncLog
from anabranch.core.belfast.protocol.messages import Status
from anabranch.core.bolt.protocol.commands import Description
from anabranch.core.errors import AnabranchError
from anabranch.core.sequencing.protocol.messages import SequencingStatus
from anabranch.shell.runtime.clock import Clock

Seen = Status | SequencingStatus
"""What the machines of another engine's log say of it."""

_LOOK_S = 2.0
"""One log that isn't available holds up the look at the others no longer than this."""

_AT_ONCE = 32
"""So many logs are asked at the same time."""

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
        front = await found.status() if live and is_lazy(found) else None
        return found.description, cursors, front

    found, cursors, seen = target.run(work)
    if seen is None:
        if out.json:
            out.document({**document(found), "cursors": cursors})
        else:
            out.table(["", ""], rows_of(found, cursors, Clock().now()))
        return
    tables = _tables(seen)
    if out.json:
        known = {"cursors": cursors} if found.front is not None else {}
        out.document({**document(found), **known, "status": tables.document(seen)})
        return
    out.table(["", ""], rows_of(found, cursors, Clock().now()))
    out.say("")
    if isinstance(seen, SequencingStatus) and found.front is not None:
        out.table(["", ""], list(lazy.rows_of(seen)))
        return
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
        if isinstance(found, SequencingStatus):
            for each in erwin.obstacles(found):
                out.say(each)


async def _watch_logs(
    service: Service, tree: str | None, out: Output, looks: AsyncGenerator[float]
) -> None:
    rates = LogRates()
    async for now_s in looks:
        asked = asyncio.Semaphore(_AT_ONCE)
        logs = [each async for each in _some(service, tree)]
        seen = await asyncio.gather(*(_look_at(service, each, asked) for each in logs))
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
                    look.log.name,
                    kind(look.log),
                    "-" if rate is None else number(rate),
                    "-" if look.tail is None else str(look.tail),
                    look.obstacle or look.held_up or held_by(look.log),
                )
                for look, rate in rated
            ),
        )


async def _some(service: Service, tree: str | None) -> AsyncGenerator[Description]:
    count = 0
    async for each in service.logs(tree=tree):
        count += 1
        if count > _LOGS_MAX:
            return
        yield each


async def _look_at(service: Service, log: Description, asked: asyncio.Semaphore) -> Look:
    """A log that doesn't answer says why in the place of its tail; the others are shown."""
    if log.engine == "bolt":
        return Look(log, log.tail)
    async with asked:
        try:
            found: AsyncLog = await service.log(log.id, timeout=_LOOK_S)
            if is_erwin(found):
                seen = await found.status(timeout=_LOOK_S)
                return Look(log, await found.tail(timeout=_LOOK_S), held_up=seen.held_up)
            return Look(log, (await bounds_of(found, _LOOK_S)).tail)
        except AnabranchError as error:
            return Look(log, None, error.message)


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
