"""`anabranch erwin ...`: the nodes of a log whose appends get their order later."""

import click

from anabranch.cli.grammar import Group
from anabranch.cli.options.service import log_argument, talks
from anabranch.cli.render import survey as rendered
from anabranch.cli.render.output import Output
from anabranch.cli.render.words import counted
from anabranch.cli.service.target import Target
from anabranch.client import engines
from anabranch.client.aio import Service
from anabranch.core.sequencing.protocol.messages import LogSurvey


@click.group(cls=Group)
def erwin() -> None:
    """Look at the nodes of an Erwin log, and open and close its shards.

    `status`, `top`, `append`, `read`, `tail` and `trim` are the same for logs of all engines.
    """


@erwin.command()
@log_argument()
@talks
def survey(target: Target, out: Output, log: str) -> None:
    """Show what the log's controllers decide and do.

    It is answered also while no append is, and shows which nodes are silent or about to end.
    """

    async def work(service: Service) -> LogSurvey:
        return await engines.erwin(await service.log(log)).survey()

    found = target.run(work)
    if out.json:
        out.document(rendered.document(found))
        return
    out.table(rendered.OVERVIEW, rendered.overview(found))
    out.say("")
    out.table(rendered.NODES, rendered.nodes(found))
    out.say("")
    out.table(rendered.SHARDS, rendered.shards(found))
    for each in rendered.notes(found):
        out.say(each)


@erwin.command("add-shards")
@log_argument()
@click.option(
    "--count",
    type=click.IntRange(1, 100),
    default=1,
    show_default=True,
    help="Number of shards to add.",
)
@talks
def add_shards(target: Target, out: Output, log: str, count: int) -> None:
    """Give a log more shards, without a pause for anybody.

    Only where `anabranch up --processes` runs the log's nodes.
    """

    async def work(service: Service) -> None:
        await engines.erwin(await service.log(log)).add_shards(count)

    target.run(work)
    if out.json:
        out.document({"log": log, "added": count})
    else:
        wanted = counted(count, "new shard")
        out.say(f"asked for {wanted}: `anabranch erwin survey {log}` shows when all are open")


@erwin.command("close-shard")
@log_argument()
@click.argument("shard")
@talks
def close_shard(target: Target, out: Output, log: str, shard: str) -> None:
    """Let a shard take no new records.

    It serves reads until all that it has is trimmed, and is removed then. The last open shard
    can't be closed: open or add another one before.
    """

    async def work(service: Service) -> None:
        await engines.erwin(await service.log(log)).close_shard(shard)

    target.run(work)
    if out.json:
        out.document({"log": log, "shard": shard, "open": False})
    else:
        out.say(f"{shard} takes no new records, and is removed when all that it has is trimmed")


@erwin.command("open-shard")
@log_argument()
@click.argument("shard")
@talks
def open_shard(target: Target, out: Output, log: str, shard: str) -> None:
    """Let a closed or removed shard take new records."""

    async def work(service: Service) -> None:
        await engines.erwin(await service.log(log)).open_shard(shard)

    target.run(work)
    if out.json:
        out.document({"log": log, "shard": shard, "open": True})
    else:
        out.say(f"{shard} takes new records")
