"""`anabranch append`: arguments, files, or lines as they come."""

import asyncio
import os
import shlex
import sys
from collections.abc import AsyncGenerator, Awaitable, Sequence
from dataclasses import dataclass
from typing import IO, Any

import click
import msgspec

from anabranch.cli.failure import advised
from anabranch.cli.options.forms import Form, header
from anabranch.cli.options.service import log_argument, talks
from anabranch.cli.options.values import BYTES, DELIMITER
from anabranch.cli.render.output import Output
from anabranch.cli.render.progress import Meter
from anabranch.cli.render.words import counted, size
from anabranch.cli.service.held import told_what_holds
from anabranch.cli.service.target import Target
from anabranch.client.aio import Service
from anabranch.client.engines import bound, is_belfast, is_erwin, is_lazy
from anabranch.client.logs import AsyncLog
from anabranch.client.session.records import Appended
from anabranch.client.speculative_log import SpeculativeLog
from anabranch.core.errors import (
    BadRequest,
    DeadlineExceeded,
    LazyAppendsOnly,
    OutcomeUnknown,
    RequestForgotten,
    Retry,
    WrongEngine,
)
from anabranch.core.records.codecs import Codec
from anabranch.core.records.record import Record

_CHUNK_BYTES = 1 << 18
_BATCH_RECORDS = 10_000


class Tally(msgspec.Struct):
    """What was appended so far, and where."""

    records: int = 0
    bytes: int = 0
    first: Appended[Any] | None = None
    last: Appended[Any] | None = None

    def count(self, appended: Sequence[Appended[Any]], size: int) -> None:
        if appended:
            self.records += len(appended)
            self.bytes += size
            self.first = self.first or appended[0]
            self.last = appended[-1]

    async def bind(self) -> None:
        """Wait until the first and the last record have positions, in a log that binds them after
        it has acknowledged.

        Both are without a position if that can't be told in time. A failure would have the records
        appended again, which are durable.
        """
        if self.first is None or self.last is None:
            return
        try:
            self.first, self.last = await bound(self.first), await bound(self.last)
        except (Retry, RequestForgotten):
            self.first = self.last = Appended(None, None)


@click.command()
@log_argument()
@click.argument("values", nargs=-1, type=BYTES)
@click.option("--key", type=BYTES, help="The key of every record.")
@click.option(
    "--header",
    "-H",
    "headers",
    multiple=True,
    type=BYTES,
    metavar="NAME=VALUE",
    help="A header of every record.",
)
@click.option(
    "--key-delimiter",
    "-K",
    "delimiter",
    type=DELIMITER,
    help="Each line is KEY, this delimiter, VALUE: -K: splits at the first colon. A line without "
    "the delimiter is a value without a key. \\t and \\x1f are understood.",
)
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="Each line is a record in JSON, as `anabranch read -o json` prints it.",
)
@click.option(
    "--empty-as-null", "-Z", is_flag=True, help="Take empty values and keys for null ones."
)
@click.option(
    "--file",
    "-f",
    "files",
    multiple=True,
    type=click.Path(allow_dash=True, dir_okay=False, exists=True),
    help="A file whose content is a record; - is stdin.",
)
@click.option(
    "--lines",
    is_flag=True,
    help="A record a line, of the files or of stdin; -K and --json imply it.",
)
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
    "--shard",
    help="Of a Belfast log: the shard that takes the records.  [default: one with least to do]",
)
@click.option(
    "--request-id",
    help="Append all records as one batch, or none. Repeated with the same id and the same "
    "records, the command gives its first result and appends nothing again, for an hour; with "
    "other records it is refused. HTTP's Idempotency-Key is the same id. A Belfast log wants "
    "--shard as well.",
)
@talks
def append(  # noqa: PLR0913  # click passes every option by its name
    *,
    target: Target,
    out: Output,
    log: str,
    values: tuple[bytes, ...],
    key: bytes | None,
    headers: tuple[bytes, ...],
    delimiter: bytes | None,
    as_json: bool,
    empty_as_null: bool,
    files: tuple[str, ...],
    lines: bool,
    batch: int,
    compression: str,
    shard: str | None,
    request_id: str | None,
) -> None:
    """Append records to a log.

    Each VALUE is a record. Without any, and without --file, what comes on stdin is: as one record,
    or with --lines a record a line, as they come. Values and keys may be any bytes.

    \b
    anabranch append orders "3 apples" --key eve
    anabranch append orders -K: -f prices.txt
    anabranch read orders -o json | anabranch append copy --json
    """  # noqa: D301  # click wants the character itself
    if values and (files or lines):
        raise click.UsageError("give values, or files or lines, not both")
    if as_json and (key is not None or headers or delimiter is not None or empty_as_null):
        raise click.UsageError("with --json the lines themselves hold keys, headers and nulls")
    if key is not None and delimiter is not None:
        raise click.UsageError("give --key, which is for all records, or -K, not both")
    lines = lines or as_json or delimiter is not None
    if not values and not files:
        if sys.stdin.isatty() and not lines:
            raise click.UsageError("nothing to append: give values, --file, or --lines and type")
        files = ("-",)
    form = Form(key, tuple(map(header, headers)), delimiter, as_json, empty_as_null)

    async def work(service: Service) -> Tally:
        if request_id is not None:
            records = await _all_records(form, values, files, lines=lines)
            once = _append_once(service, log, records, request_id, shard)
            return await told_what_holds(service, log, once)
        tally, found = Tally(), await service.log(log)
        appender = Appender(found, shard, tally)
        if values:
            records = [form.record(value) for value in values]
            await told_what_holds(service, log, appender.append(records))
        else:
            with out.progress(f"appending to {log}", _bytes_of(files), "bytes") as appender.meter:
                for path in files:
                    await _append_file(appender, path, form, batch if lines else 0)
        if is_erwin(found) or is_lazy(found):
            await tally.bind()
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


@dataclass(slots=True)
class Appender:
    """Appends to a log, and counts."""

    log: AsyncLog
    shard: str | None
    tally: Tally
    meter: Meter | None = None

    async def append(self, records: list[Record]) -> None:
        if self.shard is None:
            done = await self.log.append_many(records)
        else:
            log = _with_shards(self.log, self.shard)
            done = await log.append_many(records, shard=self.shard)
        self.tally.count(done, sum(each.size for each in records))
        if self.meter is not None:
            self.meter.reach(self.tally.bytes)


async def _append_once(
    service: Service, log: str, records: list[Record], request_id: str, shard: str | None
) -> Tally:
    """Append under a request id: however often this is asked for, it is done once."""
    tally = Tally()
    if not records:
        return tally
    size = sum(each.size for each in records)
    if shard is not None:
        of_shard = _with_shards(await service.log(log), shard)
        tally.count(await of_shard.append_many(records, shard=shard, request_id=request_id), size)
        return tally
    try:
        # By name, for a Bolt log may have been squashed or promoted since.
        tally.count(await service.append(log, records, request_id=request_id), size)
    except (WrongEngine, LazyAppendsOnly):
        found = await service.log(log)
        if not (is_erwin(found) or is_lazy(found)):
            raise
        tally.count(await found.append_many(records, request_id=request_id), size)
        await tally.bind()
    return tally


def _with_shards(log: AsyncLog, shard: str) -> SpeculativeLog:
    """The log as one whose appends may name a shard."""
    if not is_belfast(log):
        reason = (
            f"{log.name} is a log of the {log.engine} engine, and only appends to belfast logs can "
            "name a shard: leave out --shard"
        )
        raise BadRequest(f"--shard {shard}", reason)
    return log


async def _all_records(
    form: Form, values: tuple[bytes, ...], files: tuple[str, ...], *, lines: bool
) -> list[Record]:
    found = [form.record(value) for value in values]
    for path in files:
        with click.open_file(path, "rb") as stream:
            content = await asyncio.to_thread(stream.read)
        if not lines:
            found.append(form.record(content))
        elif content:
            found += form.records(content.removesuffix(b"\n").split(b"\n"))
    return found


async def _append_file(appender: Appender, path: str, form: Form, batch: int) -> None:
    with click.open_file(path, "rb") as stream:
        if not batch:
            content = await asyncio.to_thread(stream.read)
            await appender.append([form.record(content)])
            return
        pending: Awaitable[None] | None = None
        async for lines in _lines(stream, batch):
            if pending is not None:
                await pending
            records = _parsed(form, lines, appender.tally)
            pending = asyncio.ensure_future(appender.append(records))
        if pending is not None:
            await pending


def _parsed(form: Form, lines: list[bytes], tally: Tally) -> list[Record]:
    """Parse lines; the error of a bad one says how many records were appended before."""
    try:
        return form.records(lines)
    except BadRequest as wrong:
        before = f"{counted(tally.records, 'record')} before it were appended"
        reason = f"{wrong.facts['reason']}; {before if tally.records else 'nothing was appended'}"
        raise BadRequest(str(wrong.facts["what"]), reason) from None


async def _lines(stream: IO[bytes], count_max: int) -> AsyncGenerator[list[bytes]]:
    """Yield the lines that have come so far; the next ones are read while these are appended."""
    rest = b""
    read = getattr(stream, "read1", stream.read)
    while chunk := await asyncio.to_thread(read, _CHUNK_BYTES):
        whole = (rest + chunk).split(b"\n")
        rest = whole.pop()
        for start in range(0, len(whole), count_max):
            yield whole[start : start + count_max]
    if rest:
        yield [rest]


def _bytes_of(files: tuple[str, ...]) -> float | None:
    """The total size; None if it is known only at the end of stdin."""
    return None if "-" in files else sum(os.path.getsize(path) for path in files)


def _print(out: Output, log: str, tally: Tally) -> None:
    first, last = tally.first, tally.last
    if out.json:
        out.document(
            {
                "log": log,
                "count": tally.records,
                "bytes": tally.bytes,
                "position": first.position if first else None,
                "last": last.position if last else None,
                "receipt": _receipt(first),
                "last_receipt": _receipt(last),
            }
        )
        return
    if first is None or last is None:
        out.say("nothing to append")
        return
    what = counted(tally.records, "record")
    if first.position is None and first.receipt is None:
        these = "its position isn't" if tally.records == 1 else "their positions aren't"
        again = "don't append it again" if tally.records == 1 else "don't append them again"
        out.say(f"appended {what} to {log}: durable, but {these} known yet; {again}")
        return
    if first.position is None or last.position is None:
        where = "its position is withheld" if tally.records == 1 else "positions are withheld"
        out.say(
            f"appended {what} to {log}: durable and ordered, {where} until its forks are decided"
        )
        one, other = _receipt(first), _receipt(last)
        out.say(f"receipt {one}" if one == other else f"receipts {one} to {other}")
        return
    span = str(first.position)
    if last.position != first.position:
        span += f"..{last.position}"
    out.say(f"appended {what} ({size(tally.bytes)}) to {log} at {span}")


def _receipt(appended: Appended[Any] | None) -> str | None:
    """The text that `anabranch receipt`, `Service.receipt` and HTTP take."""
    return None if appended is None or appended.receipt is None else str(appended.receipt)
