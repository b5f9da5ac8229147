"""`anabranch writer ...`: programs whose appends a log remembers, so that each is done once."""

import click

from anabranch.cli.grammar import Group
from anabranch.cli.options.service import log_argument, talks
from anabranch.cli.render.output import Output
from anabranch.cli.render.words import number
from anabranch.cli.service.target import Target
from anabranch.client.aio import Service
from anabranch.core.bolt.protocol.marks import WriterState


@click.group(cls=Group)
def writer() -> None:
    """List and release the writers that a log remembers."""


@writer.command(name="list")
@log_argument()
@talks
def list_writers(target: Target, out: Output, log: str) -> None:
    """List the writers of a log, the last version that each has completed, and what is open."""

    async def work(service: Service) -> list[WriterState]:
        return await (await service.log(log, engine="bolt")).writers()

    writers = target.run(work)
    if out.json:
        out.document([_document(each) for each in writers])
    elif not writers:
        out.say(f"{log} remembers no writers")
    else:
        out.table(
            ["NAME", ">COMPLETE", ">PARTS", ">OPEN VERSIONS", ">OPEN PARTS"],
            (
                (
                    each.writer,
                    "-" if each.complete < 0 else str(each.complete),
                    number(len(each.parts)),
                    number(len(each.open)),
                    number(sum(len(version.parts) for version in each.open)),
                )
                for each in writers
            ),
        )


@writer.command(name="release")
@log_argument()
@click.argument("name")
@talks
def release_writer(target: Target, out: Output, log: str, name: str) -> None:
    """Have a log forget a writer: what that appends again afterwards, is appended twice."""

    async def work(service: Service) -> None:
        await (await service.log(log, engine="bolt")).writer(name).release()

    target.run(work)
    if out.json:
        out.document({"released": name})
    else:
        out.say(f"writer {name} is released")


def _document(state: WriterState) -> dict[str, object]:
    return {
        "name": state.writer,
        "complete": None if state.complete < 0 else state.complete,
        "parts": _by_part(state.parts),
        "open": {str(each.version): _by_part(each.parts) for each in state.open},
        "at_ms": state.at,
    }


def _by_part(parts: list[tuple[int, int]]) -> dict[str, int]:
    """How many batches each has."""
    return {str(part): batches for part, batches in parts}
