"""`anabranch cursor ...`: a reader's position, kept by the log."""

import click

from anabranch.cli.grammar import Group
from anabranch.cli.options.service import log_argument, talks
from anabranch.cli.render.output import Output
from anabranch.cli.render.words import number
from anabranch.cli.service.target import Target
from anabranch.client.aio import Service
from anabranch.core.errors import BadRequest
from anabranch.core.types import OnPromote


@click.group(cls=Group)
def cursor() -> None:
    """Keep a reader's position in a log."""


@cursor.command(name="set")
@log_argument()
@click.argument("name")
@click.argument("position", type=click.IntRange(0))
@click.option(
    "--on-promote",
    type=click.Choice([each.value for each in OnPromote]),
    help="In a fork: become its parent's when it is promoted (the default there), or end with it. "
    "In its parent: go on where the fork's cursor of this name was, or stay (the default).",
)
@talks
def set_cursor(
    target: Target, out: Output, log: str, name: str, position: int, on_promote: str | None
) -> None:
    """Set a cursor: POSITION is the next record to be read.

    It must be settled: what an undecided promotable fork may still move can't be kept.
    """
    choice = None if on_promote is None else OnPromote(on_promote)

    async def work(service: Service) -> None:
        found = await service.log(log, engine="bolt")
        await found.cursor(name).commit(position, on_promote=choice)

    target.run(work)
    _print(out, name, position)


@cursor.command(name="get")
@log_argument()
@click.argument("name")
@talks
def get_cursor(target: Target, out: Output, log: str, name: str) -> None:
    """Print a cursor's position."""

    async def work(service: Service) -> int:
        found = await (await service.log(log, engine="bolt")).cursor(name).get()
        if found is None:
            raise BadRequest(f"cursor {name}", f"{log} has none of this name: `cursor list {log}`")
        return found

    _print(out, name, target.run(work))


@cursor.command(name="list")
@log_argument()
@talks
def list_cursors(target: Target, out: Output, log: str) -> None:
    """List a log's cursors, and how far each is behind."""

    async def work(service: Service) -> tuple[dict[str, int], dict[str, OnPromote], int]:
        found = await service.log(log, engine="bolt")
        choices = await found.cursor_choices()
        return await found.cursors(), choices, found.description.settled

    cursors, choices, settled = target.run(work)
    if out.json:
        out.document(cursors)
    elif not cursors:
        out.say(f"{log} has no cursors")
    else:
        out.table(
            ["NAME", ">POSITION", ">BEHIND", "ON PROMOTE"],
            (
                (name, str(at), number(settled - at), choices.get(name, ""))
                for name, at in sorted(cursors.items())
            ),
        )


@cursor.command(name="delete")
@log_argument()
@click.argument("name")
@talks
def delete_cursor(target: Target, out: Output, log: str, name: str) -> None:
    """Delete a cursor."""

    async def work(service: Service) -> None:
        await (await service.log(log, engine="bolt")).cursor(name).delete()

    target.run(work)
    if out.json:
        out.document({"deleted": name})
    else:
        out.say(f"cursor {name} is deleted")


def _print(out: Output, name: str, position: int) -> None:
    if out.json:
        out.document({"name": name, "position": position})
    else:
        out.say(str(position))
