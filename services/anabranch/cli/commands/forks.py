"""`anabranch fork`, `promote` and `squash`."""

from datetime import datetime, timedelta

import click

from anabranch.cli.options.service import log_argument, talks
from anabranch.cli.options.values import DURATION, POINT
from anabranch.cli.render.descriptions import document, kind
from anabranch.cli.render.output import Output
from anabranch.cli.render.progress import Meter
from anabranch.cli.render.words import counted, duration
from anabranch.cli.service.target import Target
from anabranch.client.aio import Service
from anabranch.client.bolt.log import Log
from anabranch.core.bolt.protocol.commands import Description, Promotion
from anabranch.core.errors import OutOfRange
from anabranch.core.types import MS, OnParentDelete
from anabranch.shell.runtime.clock import Clock


@click.command()
@log_argument("parent")
@click.argument("name", required=False)
@click.option(
    "--continuous/--severed",
    default=None,
    help="Go on inheriting what the parent gets, or not. Continuous unless --at is given.",
)
@click.option(
    "--at",
    type=POINT,
    help="Sever before this position, or before what was committed at this time: 1234, "
    "2026-01-31T12:00:00Z, '10m ago'.",
)
@click.option("--promotable", is_flag=True, help="It may become its parent.")
@click.option("--exclusive", is_flag=True, help="Have a broker of its own serve it.")
@click.option("--ttl", type=DURATION, help="Squash it after this: 90s, 10m, 1h30m.")
@click.option(
    "--on-parent-delete",
    type=click.Choice([each.value for each in OnParentDelete]),
    default=OnParentDelete.ORPHAN.value,
    show_default=True,
    help="What a severed fork does when its parent goes: stay, with what it needs, or go too.",
)
@click.option("--why", default="", help="What it is for.")
@talks
def fork(  # noqa: PLR0913  # click passes every option by its name
    *,
    target: Target,
    out: Output,
    parent: str,
    name: str | None,
    continuous: bool | None,
    at: int | datetime | timedelta | None,
    promotable: bool,
    exclusive: bool,
    ttl: float | None,
    on_parent_delete: str,
    why: str,
) -> None:
    """Fork a log: in milliseconds, whatever its length.

    NAME is the fork's own; its full name is ROOT--NAME.
    """
    severed = at is not None if continuous is None else not continuous
    if at is not None and not severed:
        raise click.UsageError(
            "a continuous fork begins at the tail: leave out --at or use --severed"
        )
    if severed and promotable:
        raise click.UsageError("a severed fork can't be promotable: leave out one of the two")

    async def work(service: Service) -> tuple[Description, float]:
        above = await service.log(parent, engine="bolt")
        watch = Meter("fork", None, "forks", shown=False)
        made = (
            await above.sfork(
                name,
                past=at - 1 if isinstance(at, int) else None,
                at=_moment(at),
                ttl=ttl,
                on_parent_delete=OnParentDelete(on_parent_delete),
                exclusive=exclusive,
                why=why,
            )
            if severed
            else await above.cfork(
                name, promotable=promotable, ttl=ttl, exclusive=exclusive, why=why
            )
        )
        return made.description, watch.elapsed_s

    try:
        made, seconds = target.run(work)
    except OutOfRange as wrong:
        raise _in_terms_of_at(wrong) if isinstance(at, int) else wrong from None
    if out.json:
        out.document(document(made))
        return
    out.say(
        f"{made.name}: {kind(made)} fork of {made.parent} at {made.fork_point}, "
        f"made in {duration(seconds)}"
    )


@click.command()
@log_argument("fork")
@click.option(
    "--expect-own",
    type=click.IntRange(min=0),
    metavar="N",
    help="Promote it only if it has exactly N records of its own, as `anabranch log show` shows "
    "them: nothing that was appended since goes in unseen.",
)
@talks
def promote(target: Target, out: Output, fork: str, expect_own: int | None) -> None:
    """Make a promotable fork its parent.

    The parent's other promotable forks are squashed, with everything below them.
    """

    async def work(service: Service) -> Promotion:
        found = await service.log(fork, engine="bolt")
        return await found.promote(expect_own=expect_own)

    done = target.run(work)
    if out.json:
        out.document(
            {
                "into": done.into,
                "fork_point": done.fork_point,
                "records": done.records,
                "squashed": done.squashed,
                "cursors": done.cursors,
            }
        )
        return
    squashed = f"; squashed {', '.join(done.squashed)}" if done.squashed else ""
    cursors = f"; cursors {', '.join(done.cursors)} followed" if done.cursors else ""
    out.say(
        f"{done.into} is now what {fork} was: {counted(done.records, 'record')} of its own from "
        f"position {done.fork_point} on{squashed}{cursors}"
    )


@click.command()
@log_argument("fork")
@talks
def squash(target: Target, out: Output, fork: str) -> None:
    """Delete a fork and all that inherits from it.

    Severed forks of it keep what they need, unless they were made to go with it.
    """

    async def work(service: Service) -> Log:
        found = await service.log(fork, engine="bolt")
        await found.squash()
        return found

    gone = target.run(work)
    if out.json:
        out.document({"squashed": gone.name})
    else:
        out.say(f"{gone.name} is squashed")


def _in_terms_of_at(wrong: OutOfRange) -> OutOfRange:
    """The same error about `--at`, which names the first position that a fork doesn't take. The
    service speaks of the last one that it takes.
    """
    log, *numbers = (wrong.facts[name] for name in ("log", "position", "start", "last"))
    position, start, last = (number + 1 for number in numbers if isinstance(number, int))
    return OutOfRange(str(log), position, start, last, "a position for --at in")


def _moment(at: int | datetime | timedelta | None) -> datetime | int | None:
    if isinstance(at, timedelta):
        return Clock().now() // MS - round(at.total_seconds() * 1_000)
    return None if isinstance(at, int) else at
