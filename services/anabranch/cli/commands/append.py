"""`anabranch append`: arguments, files, or lines as they come."""

import asyncio
import os
import shlex
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import IO

import click
import msgspec

from anabranch.cli.failure import advised
from anabranch.cli.options import log_argument, talks
from anabranch.cli.render.output import Meter, Output, counted, size
from anabranch.cli.service import Target
from anabranch.client.aio import Service
from anabranch.client.bolt.log import Log
from anabranch.client.bolt.receipts import Receipt
from anabranch.client.bolt.records import Appended, record
from anabranch.core.errors import DeadlineExceeded, OutcomeUnknown
from anabranch.core.records.codecs import Codec
from anabranch.core.records.record import Record

_CHUNK_BYTES = 1 << 18
_BATCH_RECORDS = 10_000

Make = Callable[[bytes], Record]


class Tally(msgspec.Struct):
    """What was appended so far, and where."""

    records: int = 0
    bytes: int = 0
    first: Appended[Receipt] | None = None
    last: Appended[Receipt] | None = None

    def count(self, appended: list[Appended[Receipt]], size: int) -> None:
        if appended:
            self.records += len(appended)
            self.bytes += size
            self.first = self.first or appended[0]
            self.last = appended[-1]


@click.command()
@log_argument()
@click.argument("values", nargs=-1)
@click.option("--key", help="The key of every record.")
@click.option(
    "--header", "-H", multiple=True, metavar="NAME=VALUE", help="A header of every record."
)
@click.option(
    "--file",
    "-f",
    "files",
    multiple=True,
    type=click.Path(allow_dash=True, dir_okay=False, exists=True),
    help="A file whose content is a record; - is stdin.",
)
@click.option("--lines", is_flag=True, help="A record a line, of the files or of stdin.")
@click.option(
    "--batch",
    type=click.IntRange(1, 100_000),
    default=_BATCH_RECORDS,
    show_default=True,
    help="Wait until so many are acknowledged before sending more.",
)
@click.option(
    "--compression",
    type=click.Choice([each.name.lower() for each in Codec]),
    default="none",
    show_default=True,
    help="How batches are compressed, on their way and in the log.",
)
@click.option(
    "--request-id",
    help="Append all records as one batch, or none. Repeated with the same id, the command gives "
    "its first result and appends nothing again, for an hour.",
)
@talks
def append(  # noqa: PLR0913  # click passes every option by its name
    *,
    target: Target,
    out: Output,
    log: str,
    values: tuple[str, ...],
    key: str | None,
    header: tuple[str, ...],
    files: tuple[str, ...],
    lines: bool,
    batch: int,
    compression: str,
    request_id: str | None,
) -> None:
    """Append records to a log.

    Each VALUE is a record. Without any, and without --file, what comes on stdin is: as one record,
    or with --lines a record a line, as they come.
    """
    if values and (files or lines):
        raise click.UsageError("give values, or files or lines, not both")
    if not values and not files:
        if sys.stdin.isatty() and not lines:
            raise click.UsageError("nothing to append: give values, --file, or --lines and type")
        files = ("-",)
    headers = tuple(_header(each) for each in header)

    def make(value: bytes) -> Record:
        return record(value, None if key is None else key.encode(), headers)

    async def work(service: Service) -> Tally:
        if request_id is not None:
            contents = [os.fsencode(value) for value in values] or await _contents(files, lines)
            return await _once(service, log, [make(each) for each in contents], request_id)
        found = await service.log(log)
        tally = Tally()
        if values:
            made = [make(os.fsencode(value)) for value in values]
            tally.count(await found.append_many(made), sum(each.size for each in made))
            return tally
        total = _bytes_of(files)
        with out.progress(f"appending to {log}", total, "bytes") as meter:
            for path in files:
                await _append_file(found, path, make, tally, meter, batch if lines else 0)
        return tally

    try:
        _print(out, log, target.run(work, Codec[compression.upper()]))
    except DeadlineExceeded as late:
        if late.request_id is None:
            raise
        advice = f"run the same command again with --request-id {shlex.quote(late.request_id)}"
        raise advised(late, advice) from late.__cause__
    except OutcomeUnknown as unknown:
        advice = "look at the log before you run it again; with --request-id that isn't needed"
        raise advised(unknown, advice) from unknown.__cause__


async def _once(service: Service, log: str, records: list[Record], request_id: str) -> Tally:
    """However often it is asked for."""
    tally = Tally()
    if records:
        done = await service.append(log, records, request_id=request_id)
        tally.count(done, sum(each.size for each in records))
    return tally


async def _contents(files: tuple[str, ...], lines: bool) -> list[bytes]:
    found: list[bytes] = []
    for path in files:
        with click.open_file(path, "rb") as stream:
            content = await asyncio.to_thread(stream.read)
        found += content.removesuffix(b"\n").split(b"\n") if lines and content else [content]
    return found


async def _append_file(
    log: Log, path: str, make: Make, tally: Tally, meter: Meter, batch: int
) -> None:
    with click.open_file(path, "rb") as stream:
        if not batch:
            content = await asyncio.to_thread(stream.read)
            tally.count(await log.append_many([make(content)]), len(content))
            meter.reach(tally.bytes)
            return
        pending: Awaitable[None] | None = None
        async for lines in _lines(stream, batch):
            if pending is not None:
                await pending
            pending = asyncio.ensure_future(_append_lines(log, lines, make, tally, meter))
        if pending is not None:
            await pending


async def _append_lines(
    log: Log, lines: list[bytes], make: Make, tally: Tally, meter: Meter
) -> None:
    tally.count(await log.append_many(map(make, lines)), sum(map(len, lines)))
    meter.reach(tally.bytes)


async def _lines(stream: IO[bytes], count_max: int) -> AsyncGenerator[list[bytes]]:
    """What has come so far, line by line: the next is read while these are appended."""
    rest = b""
    read = getattr(stream, "read1", stream.read)
    while chunk := await asyncio.to_thread(read, _CHUNK_BYTES):
        whole = (rest + chunk).split(b"\n")
        rest = whole.pop()
        for start in range(0, len(whole), count_max):
            yield whole[start : start + count_max]
    if rest:
        yield [rest]


def _header(text: str) -> tuple[str, bytes | None]:
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise click.UsageError(f"a header reads NAME=VALUE, not {text!r}")
    return name, value.encode()


def _bytes_of(files: tuple[str, ...]) -> float | None:
    """None if nobody can say before the end."""
    return None if "-" in files else sum(os.path.getsize(path) for path in files)


def _print(out: Output, log: str, tally: Tally) -> None:
    first, last = tally.first, tally.last
    if out.json:
        out.document(
            {
                "log": log,
                "records": tally.records,
                "bytes": tally.bytes,
                "first": first.position if first else None,
                "last": last.position if last else None,
                "first_receipt": _receipt(first),
                "last_receipt": _receipt(last),
            }
        )
        return
    if first is None or last is None:
        out.say("nothing to append")
        return
    what = counted(tally.records, "record")
    if first.position is None or last.position is None:
        where = "its position is withheld" if tally.records == 1 else "positions are withheld"
        out.say(
            f"appended {what} to {log}: durable and ordered, {where} until its forks are decided"
        )
        return
    span = str(first.position)
    if last.position != first.position:
        span += f"..{last.position}"
    out.say(f"appended {what} ({size(tally.bytes)}) to {log} at {span}")


def _receipt(appended: Appended[Receipt] | None) -> dict[str, int | str] | None:
    """`text` is what `Service.receipt` and HTTP take."""
    if appended is None or appended.receipt is None:
        return None
    promise = appended.receipt.promise
    return {
        "text": promise.text,
        "log": promise.log,
        "generation": promise.generation,
        "provisional": promise.provisional,
    }
