"""`anabranch belfast ...`: a log that is read ahead of its order: looked at, and tried out."""

import asyncio
import sys
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from anabranch.cli.failure import advised
from anabranch.cli.grammar import Group
from anabranch.cli.options.service import SERVICE, folded_into, prints, target_of
from anabranch.cli.options.values import BYTES, DURATION
from anabranch.cli.render.belfast import (
    OVERVIEW,
    SHARDS,
    WINDOWS,
    Rates,
    document,
    overview,
    shards,
    windows,
)
from anabranch.cli.render.output import Output
from anabranch.cli.render.words import printable, shown
from anabranch.cli.service.target import Target as ServiceTarget
from anabranch.client import engines
from anabranch.client.aio import Service
from anabranch.client.session.records import Confirm, Deliver, Event
from anabranch.core.errors import BadRequest, DeadlineExceeded, OutcomeUnknown

if TYPE_CHECKING:
    from anabranch.client.belfast.aio import Log
    from anabranch.client.belfast.log import ShardedLog

DEFAULT_URL = "belfast://127.0.0.1:7440/belfast"

_UNKNOWN = (
    "look at the log before you run it again; with --shard and --request-id that isn't needed, nor "
    "with --retry-unknown where a record may be there twice"
)

A = TypeVar("A")
Command = TypeVar("Command", bound=Callable[..., Any])


class Target:
    """A log of a service by its name, or a deployment by its address; and how long to try."""

    def __init__(self, url: str, timeout_s: float, service: ServiceTarget, log: str | None) -> None:
        self.url, self.timeout_s, self.service, self.log = url, timeout_s, service, log

    def run(self, work: "Callable[[Log], Awaitable[A]]") -> A:
        """Ask the deployment at this address."""
        from anabranch.client.belfast import aio
        from anabranch.client.session.settings import Settings

        async def conversation() -> A:
            settings = Settings(client="anabranch-cli", timeout_ms=round(self.timeout_s * 1_000))
            async with aio.connect(self.url, timeout=self.timeout_s, settings=settings) as log:
                return await work(log)

        return asyncio.run(conversation())

    def run_any(self, work: "Callable[[ShardedLog[Any]], Awaitable[A]]") -> A:
        """Ask the log of a service that was named, or else the deployment at this address."""
        name = self.log
        if name is None:
            return self.run(work)

        async def ask(service: Service) -> A:
            return await work(engines.belfast(await service.log(name)))

        return self.service.run(ask)


def _asks(command: Command, *, named: bool) -> Command:
    def folded(timeout: float | None, log: str | None = None, **given: Any) -> Any:
        context = click.get_current_context()
        url: str | None = given.pop("url")
        for option in ("profile", "token", "token_file"):
            given.pop(option, None)
        service = target_of(context, timeout)
        target = Target(url or DEFAULT_URL, service.timeout_s, service, log)
        return command(target=target, **given)

    made: Any = prints(folded_into(folded, command))
    options = (_LOG, _URL, *SERVICE[1:]) if named else (_URL, SERVICE[-1])
    for option in reversed(options):
        made = option(made)
    return made


def asks(command: Command) -> Command:
    """The command gets `out`, and `target`: a log of a service, or a deployment."""
    return _asks(command, named=True)


def asks_directly(command: Command) -> Command:
    """The command gets `out`, and `target`: a deployment that no service knows of."""
    return _asks(command, named=False)


_LOG = click.option("--log", help="A log of the service, by its name; --url is the service's then.")
_URL = click.option(
    "--url",
    envvar="ANABRANCH_URL",
    help="Addresses of its sequencers or shards, and its cluster's name (ANABRANCH_URL).  "
    f"[default: {DEFAULT_URL}]",
)


class _OfOneLog(click.Command):
    """A command that takes no argument where those for logs of a service take a name."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        given = list(args)
        try:
            return super().parse_args(ctx, args)
        except click.UsageError as wrong:
            if "extra argument" not in wrong.message:
                raise
            shown = given[0] if given and not given[0].startswith("-") else "NAME"
            reason = f"{wrong.message}: a log of a service is named with --log {shown}"
            raise click.UsageError(reason, ctx) from None


@click.group(cls=Group)
def belfast() -> None:
    """Look at the shards and windows of a Belfast log, and let shards join and leave.

    With --log the log is one of a service. Without, --url names a deployment of its own, such as
    `anabranch up --engine belfast` runs, and `append`, `tail`, `top` and `trim` are for those:
    for a log of a service, the commands without `belfast` do the same.
    """


@belfast.command(cls=_OfOneLog)
@asks
def status(target: Target, out: Output) -> None:
    """Show who leads, how far the log is, and how each shard does."""
    found = target.run_any(lambda log: log.status())
    if out.json:
        out.document(document(found))
        return
    out.table(OVERVIEW, overview(found))
    out.say("")
    out.table(SHARDS, shards(found))


@belfast.command(name="windows", cls=_OfOneLog)
@asks
def show_windows(target: Target, out: Output) -> None:
    """Show the window that is being cut, and each shard's quota in it and in the last published."""
    found = target.run_any(lambda log: log.status())
    if out.json:
        out.document(document(found))
        return
    out.table(WINDOWS, windows(found))


@belfast.command()
@click.option(
    "--interval", type=DURATION, default="1s", show_default=True, help="The time between two looks."
)
@click.option("--count", type=click.IntRange(1), help="End after this many looks.")
@asks_directly
def top(target: Target, out: Output, interval: float, count: int | None) -> None:
    """Show rates, no-ops, lag and quotas of each shard live, until Ctrl-C."""

    async def look(log: "Log") -> None:
        rates, looked = Rates(), 0
        while count is None or looked < count:
            if looked:
                sys.stdout.flush()
                await asyncio.sleep(interval)
            found = await log.status()
            looked += 1
            if out.json:
                out.line(document(found))
                continue
            if sys.stdout.isatty():
                click.clear()
            out.table(OVERVIEW, overview(found))
            out.say("")
            out.table(rates.columns, rates.rows(found, asyncio.get_running_loop().time()))

    target.run(look)


@belfast.command()
@click.argument("values", nargs=-1, type=BYTES)
@click.option("--shard", help="The shard that takes the records. [default: the least busy one]")
@click.option("--key", type=BYTES, help="The key of every record.")
@click.option(
    "--request-id",
    help="With --shard: repeated with the same id, the command gives its first positions and "
    "appends nothing again. Several records have this id and a number each.",
)
@click.option(
    "--retry-unknown",
    is_flag=True,
    help="If a shard fails with a record whose fate it doesn't know, append the record again, "
    "though it may then be in the log twice.",
)
@asks_directly
def append(  # click passes every option by its name
    target: Target,
    out: Output,
    values: tuple[bytes, ...],
    shard: str | None,
    key: bytes | None,
    request_id: str | None,
    retry_unknown: bool,
) -> None:
    """Append records, and print their positions, which are final.

    Each VALUE is a record. Without any, each line of stdin is one.
    """
    if request_id is not None and retry_unknown:
        raise click.UsageError(
            "give --request-id, under which nothing is appended twice, or --retry-unknown, not both"
        )
    given = list(values) or [line.rstrip(b"\n") for line in sys.stdin.buffer]
    if not given:
        raise BadRequest("an append", "there is no value: give some, or lines on stdin")

    async def work(log: "Log") -> list[int]:
        if request_id is not None:
            ids = [f"{request_id}/{number}" for number in range(len(given))]
            return [
                await log.append(each, key=key, shard=shard, request_id=id)
                for each, id in zip(given, ids, strict=True)
            ]
        pending = [
            await log.append_soon(each, key=key, shard=shard, retry_unknown=retry_unknown)
            for each in given
        ]
        return [await each for each in pending]

    try:
        positions = target.run(work)
    except DeadlineExceeded as late:
        if request_id is None:
            raise
        raise advised(
            late, "run the same command again, with the same --request-id"
        ) from late.__cause__
    except OutcomeUnknown as unknown:
        raise advised(unknown, _UNKNOWN) from unknown.__cause__
    if out.json:
        out.document({"positions": positions})
    else:
        for position in positions:
            out.say(str(position))


@belfast.command()
@click.option(
    "--from", "start", type=click.IntRange(0), help="The first position. [default: the end]"
)
@click.option(
    "--shard",
    "chosen",
    multiple=True,
    help="Only records of this shard; may be given several times.",
)
@click.option("--confirmed", is_flag=True, help="Print a record only once its position is final.")
@click.option(
    "--records",
    "count",
    type=click.IntRange(1),
    help="End after this many records with final positions.",
)
@asks_directly
def tail(
    target: Target,
    out: Output,
    start: int | None,
    chosen: tuple[str, ...],
    confirmed: bool,
    count: int | None,
) -> None:
    """Print records as soon as they are durable, and what becomes of their positions.

    `?` marks a record whose position is predicted. `! N` says that predictions failed: everything
    from position N on comes again. `= N` says that everything before position N is final.
    """

    async def follow(log: "Log") -> None:
        certain = _Certain(count)
        async with log.subscribe(start, shards=chosen or None, speculative=not confirmed) as events:
            async for event in events:
                _print(out, event)
                if certain.enough(event):
                    return

    target.run(follow)


class _Certain:
    """Counts the records whose positions are final."""

    def __init__(self, wanted: int | None) -> None:
        self._wanted = wanted
        self._open: list[int] = []
        self._count = 0

    def enough(self, event: Event) -> bool:
        match event:
            case Deliver(record, speculative):
                self._open.append(record.position)
                settled = 0 if speculative else record.position + 1
            case Confirm(up_to):
                settled = up_to
            case _:
                self._open = [each for each in self._open if each < event.since]
                settled = 0
        left = [each for each in self._open if each >= settled]
        self._count += len(self._open) - len(left)
        self._open = left
        return self._wanted is not None and self._count >= self._wanted


def _print(out: Output, event: Event) -> None:
    match event:
        case Deliver(record, speculative):
            if out.json:
                out.line(
                    {
                        "position": record.position,
                        "speculative": speculative,
                        "shard": record.shard,
                        "key": shown(record.key),
                        "value": shown(record.value),
                    }
                )
            else:
                mark = "?" if speculative else " "
                where = f"{record.position} {printable(record.shard)}"
                out.say(f"{mark} {where} {shown(record.key)} {shown(record.value)}")
        case Confirm(up_to):
            out.line({"confirmed": up_to}) if out.json else out.say(f"= {up_to}")
        case _:
            out.line({"failed": event.since}) if out.json else out.say(f"! {event.since}")
    sys.stdout.flush()


@belfast.command()
@click.argument("shard")
@asks
def leave(target: Target, out: Output, shard: str) -> None:
    """Let a shard leave the log.

    It keeps its slots in the windows that are published. Stop it when its records are trimmed, or
    when nobody needs them.
    """
    target.run_any(lambda log: log.leave(shard))
    if out.json:
        out.document({"leaving": shard})
    else:
        out.say(f"{shard} leaves when the windows that it is part of are over")


@belfast.command()
@click.argument("shard")
@asks
def join(target: Target, out: Output, shard: str) -> None:
    """Take back a shard that has left.

    All of its replicas must be up. A new shard joins by itself, and a failed one comes back by
    itself.
    """
    target.run_any(lambda log: log.join(shard))
    if out.json:
        out.document({"joining": shard})
    else:
        out.say(f"{shard} gets a seat in a window to come")


@belfast.command()
@click.argument("position", type=click.IntRange(0))
@asks_directly
def trim(target: Target, out: Output, position: int) -> None:
    """Delete the records before POSITION."""
    target.run(lambda log: log.trim(position))
    if out.json:
        out.document({"trimmed": position})
    else:
        out.say(f"nothing before {position} is kept")
