"""`anabranch log ...`, and `trim`: root logs, their quotas, and what is kept of them."""

from typing import Literal

import click
import msgspec

from anabranch.cli.commands.status import show_status
from anabranch.cli.grammar import Group
from anabranch.cli.options.service import log_argument, talks
from anabranch.cli.options.values import DURATION, RATE
from anabranch.cli.render.descriptions import (
    age,
    document,
    held_by,
    kind,
    quota_document,
    quota_words,
)
from anabranch.cli.render.output import Output
from anabranch.cli.render.words import counted, number
from anabranch.cli.service.target import Target
from anabranch.client.aio import Service
from anabranch.client.catalogue import check_engine, check_promises, engine_settings
from anabranch.client.engines import BELFAST, BOLT, ERWIN, Bounds, bounds_of
from anabranch.client.logs import AsyncLog
from anabranch.core.bolt.protocol.commands import Description, EngineSettings
from anabranch.core.errors import BadRequest, LogExists
from anabranch.core.quota import Quota
from anabranch.shell.runtime.clock import Clock


@click.group(cls=Group)
def log() -> None:
    """Create, list, show and delete logs."""


@log.command()
@click.argument("name")
@click.option("--why", default="", help="What it is for.")
@click.option("--if-missing", is_flag=True, help="It is fine if there is one already.")
@click.option(
    "--engine",
    type=click.Choice([BOLT, BELFAST, ERWIN]),
    default=BOLT,
    show_default=True,
    help="bolt: the log can be forked. belfast: it is read ahead of its order. erwin: appends are "
    "acknowledged ahead of it.",
)
@click.option(
    "--shards",
    type=click.IntRange(1),
    help="Of a Belfast or Erwin log: parts that hold its records (default 1).",
)
@click.option(
    "--replicas",
    type=click.IntRange(1),
    help="Of a Belfast or Erwin log: copies of each shard (default 1 in a server of one process, "
    "else 2).",
)
@click.option(
    "--sequencers",
    type=click.IntRange(1),
    help="Of a Belfast or Erwin log, or of lazy appends: members that order the records (default 1 "
    "in a server of one process, else 3).",
)
@click.option(
    "--append",
    type=click.Choice(["direct", "lazy"]),
    default="direct",
    show_default=True,
    help="Of a Bolt log. lazy: sequencers acknowledge appends in one round trip, and commit them "
    "to the log in the background.",
)
@click.option(
    "--mode",
    type=click.Choice(["m", "st"]),
    help="Of an Erwin log. m (default): records go through the sequencers. st: to the shards at "
    "once.",
)
@click.option(
    "--durability",
    type=click.Choice(["fsync", "memory"]),
    help="Of an Erwin log, or of lazy appends: an acknowledged record is on the disks of all "
    "sequencers (fsync, the default), or in their memory.",
)
@click.option(
    "--black-box",
    metavar="URL",
    help="Of an Erwin log: its shards keep their records in Kafka "
    "topics (kafka://HOST:PORT/TOPIC) or Bolt logs (anabranch://HOST:PORT/LOG), one each: TOPIC-0 "
    "and so on.",
)
@talks
def create(  # noqa: PLR0913  # click passes every option by its name
    *,
    target: Target,
    out: Output,
    name: str,
    why: str,
    if_missing: bool,
    engine: str,
    shards: int | None,
    replicas: int | None,
    sequencers: int | None,
    append: str,
    mode: str | None,
    durability: str | None,
    black_box: str | None,
) -> None:
    """Create a root log.

    \b
    anabranch log create orders
    anabranch log create ticks --engine belfast --shards 2
    anabranch log create audit --engine erwin --durability memory
    anabranch log create clicks --append lazy
    """  # noqa: D301  # click wants the character itself
    lazy = append == "lazy"
    shaped, erwin = bool(shards or replicas), bool(mode or black_box)
    sequenced, durable = bool(sequencers), bool(durability)
    _check_usage(
        engine, lazy=lazy, shaped=shaped, sequenced=sequenced, durable=durable, erwin=erwin
    )
    settings = engine_settings(
        shards=shards or 1,
        replicas=replicas,
        sequencers=sequencers,
        addresses=(),
        cluster="",
        mode=mode or "",
        durability=durability or "",
        black_box=black_box or "",
    )

    async def work(service: Service) -> Description:
        try:
            made: AsyncLog = await service.made(
                name,
                check_engine(engine),
                settings,
                append="lazy" if lazy else "direct",
                why=why,
                by=None,
                owner="",
                timeout=None,
            )
        except LogExists:
            if not if_missing:
                raise
            made = await service.log(name)
            _check_same(made.description, engine, settings, lazy=lazy)
        return made.description

    made = target.run(work)
    if out.json:
        out.document(document(made))
    elif made.settings is None:
        out.say(f"{made.name} is there, with {number(made.tail)} records")
    else:
        out.say(f"{made.name} is there, with {counted(made.settings.shards, 'shard')}")


def _check_same(found: Description, engine: str, settings: EngineSettings, *, lazy: bool) -> None:
    """Is a log that is there one that may have been meant?"""
    if found.engine != engine:
        reason = f"it exists already, as a log of the {found.engine} engine: choose another name"
        raise BadRequest(f"the log {found.name}", reason)
    if lazy and found.front is None:
        reason = "it exists, and its appends are direct: `log set-appends` makes them lazy"
        raise BadRequest(f"the log {found.name} with lazy appends", reason)
    check_promises(found, settings)


def _check_usage(
    engine: str, *, lazy: bool, shaped: bool, sequenced: bool, durable: bool, erwin: bool
) -> None:
    """Which options go with which logs."""
    if lazy and engine != BOLT:
        raise click.UsageError("--append lazy is for --engine bolt")
    if engine == BOLT and (shaped or (sequenced and not lazy)):
        raise click.UsageError(
            "--shards, --replicas and --sequencers are for --engine belfast and erwin"
        )
    if engine != ERWIN and (erwin or (durable and not lazy)):
        raise click.UsageError(
            "--mode and --black-box are for --engine erwin, --durability for that and for "
            "--append lazy"
        )


@log.command(name="list")
@click.argument("prefix", default="")
@click.option("--tree", metavar="ROOT", help="Only this root and its forks.")
@talks
def list_logs(target: Target, out: Output, prefix: str, tree: str | None) -> None:
    """List logs and forks in order of name; in JSON one a line."""

    async def work(service: Service) -> list[Description]:
        found: list[Description] = []
        told = 0
        async for each in service.logs(prefix, tree=tree):
            told += 1
            if out.json:
                out.line(document(each))
            else:
                found.append(each)
        if tree is not None and not told:
            # Of a root that is gone, forks may be there: only what lists nothing has to exist.
            await service.log(tree)
        return found

    found = target.run(work)
    if out.json:
        return
    if not found:
        out.say("there are no logs" + (f" that begin with {prefix}" if prefix else ""))
        return
    now = Clock().now()
    out.table(
        ["NAME", "KIND", ">TAIL", ">OWN", ">FORKS", ">AGE", "HELD UP"],
        (
            (
                each.name,
                kind(each),
                *(("-", "-") if each.settings else (str(each.tail), number(each.own_records))),
                number(each.forks),
                age(each, now),
                held_by(each),
            )
            for each in found
        ),
    )


@log.command()
@log_argument()
@talks
def show(target: Target, out: Output, log: str) -> None:
    """Show all about a log or fork."""
    show_status(target, out, log, live=False)


@log.command()
@log_argument()
@click.option("--force", is_flag=True, help="Also if it has forks; severed ones keep their own.")
@talks
def delete(target: Target, out: Output, log: str, force: bool) -> None:
    """Delete a root log, with all its records."""

    async def work(service: Service) -> None:
        # By its name: a log that nothing serves can't be opened, and can be deleted.
        await service.delete(log, force=force)

    target.run(work)
    if out.json:
        out.document({"deleted": log})
    else:
        out.say(f"{log} is deleted")


@log.command()
@log_argument()
@click.argument("append", type=click.Choice(["lazy", "direct"]))
@click.option(
    "--sequencers",
    type=click.IntRange(1),
    help="Members that acknowledge appends (default 1 in a server of one process, else 3).",
)
@click.option(
    "--durability",
    type=click.Choice(["fsync", "memory"]),
    help="An acknowledged record is on the disks of all sequencers (fsync, the default), or in "
    "their memory.",
)
@talks
def set_appends(
    target: Target,
    out: Output,
    log: str,
    append: Literal["lazy", "direct"],
    sequencers: int | None,
    durability: Literal["fsync", "memory"] | None,
) -> None:
    """Make the appends of a Bolt log, or of a fork of it, lazy; or lazy ones direct.

    Programs that append have to open the log anew. A lazy front ends when all that it has
    acknowledged is in the log, which this command waits for. The log can't have another one then.
    """
    if append == "direct" and (sequencers or durability):
        raise click.UsageError("--sequencers and --durability are for lazy appends")

    async def work(service: Service) -> Description:
        made = await service.set_appends(
            log, append, sequencers=sequencers, durability=durability or ""
        )
        return made.description

    made = target.run(work)
    if out.json:
        out.document(document(made))
    else:
        out.say(f"appends to {made.name} are {append} from now on")


@log.command()
@log_argument()
@click.option("--append-bytes", type=RATE, help="Appended in a second: 1MiB/s; none for no limit.")
@click.option("--append-records", type=RATE, help="Records appended in a second: 500/s, none.")
@click.option("--read-bytes", type=RATE, help="Read in a second, by all its readers together.")
@click.option("--burst", type=DURATION, help="What wasn't used in so long may be used at once.")
@talks
def quota(
    target: Target,
    out: Output,
    log: str,
    append_bytes: int | None,
    append_records: int | None,
    read_bytes: int | None,
    burst: float | None,
) -> None:
    """Show or set how much may be appended to a log and read from it in a second.

    What isn't given stays as it is. A fork begins with its parent's quota, and has it for itself.
    An append or read over the quota is refused, and the refusal says when to try again;
    subscribers are slowed. Reads of a Belfast log can't be limited.
    """
    given = {
        "append_bytes_per_s": append_bytes,
        "append_records_per_s": append_records,
        "read_bytes_per_s": read_bytes,
        "burst_ms": None if burst is None else round(burst * 1_000),
    }
    changes = {name: value for name, value in given.items() if value is not None}
    limits = {name: None if value == RATE.NONE else value for name, value in changes.items()}

    async def work(service: Service) -> Description:
        found = await service.log(log)
        if not limits:
            return found.description
        before = found.description.quota or Quota()
        await found.set_quota(msgspec.structs.replace(before, **limits))
        return (await service.log(found.id)).description

    found = target.run(work)
    if out.json:
        out.document(quota_document(found.quota or Quota()))
    else:
        out.say(f"{found.name}: {quota_words(found.quota) or 'no quota'}")


@click.command()
@log_argument()
@click.option(
    "--before", type=click.IntRange(0), required=True, help="The first position that is kept."
)
@talks
def trim(target: Target, out: Output, log: str, before: int) -> None:
    """Give up the records of a log before a position.

    Forks keep what they inherited of them; space is freed once no log needs it.
    """

    async def work(service: Service) -> tuple[Description, Bounds]:
        found = await service.log(log)
        await found.trim(before)
        found = await service.log(log)
        return found.description, await bounds_of(found)

    found, now = target.run(work)
    if out.json:
        out.document({**document(found), "start": now.start})
    else:
        out.say(f"{found.name} now begins at {now.start}")
