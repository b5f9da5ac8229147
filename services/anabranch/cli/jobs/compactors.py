"""`anabranch compactors ...`: jobs that copy small extents of logs together."""

import click
from msgspec.structs import asdict

from anabranch.cli.jobs.plans import Scans
from anabranch.cli.options.service import talks
from anabranch.cli.render.output import Output
from anabranch.cli.render.words import instant
from anabranch.cli.service.target import Target
from anabranch.core.bolt.protocol.compactors import RUNNING
from anabranch.core.errors import CompactorEnded


@click.group(cls=Scans)
def compactors() -> None:
    """List compactors, and end those that nobody needs.

    A job that copies many small extents into few objects (`anabranch spark compact`) registers as a
    compactor. `anabranch compactors` is `anabranch compactors list`.
    """


@compactors.command(name="list")
@talks
def list_compactors(target: Target, out: Output) -> None:
    """List the compactors, the oldest first. One that has ended is shown for as long as its URLs
    may still be used.
    """
    found = target.run(lambda service: service.compactors())
    if out.json:
        out.document({"compactors": [asdict(each) for each in found]})
        return
    out.table(
        [">COMPACTOR", "NAME", "SINCE", "UNTIL", "ENDED"],
        (
            (
                str(each.id),
                each.name,
                instant(each.began),
                instant(each.expires),
                "" if each.ended == RUNNING else instant(each.ended),
            )
            for each in found
        ),
    )


@compactors.command()
@click.argument("compactor", type=int)
@talks
def end(target: Target, out: Output, compactor: int) -> None:
    """End a compactor, as `list` names it. Its job fails at its next request."""
    found = target.run(lambda service: service.compactors())
    known = next((each for each in found if each.id == compactor), None)
    if known is None:
        reason = "it isn't among those that `compactors list` shows"
        raise CompactorEnded(compactor, reason)
    target.run(lambda service: service.running_compactor(known).end())
    if out.json:
        out.document({"ended": compactor})
    else:
        out.say(f"compactor {compactor} of {known.name} has ended")
