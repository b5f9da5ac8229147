"""`anabranch sum`: the set sum of a range of a log."""

import click

from anabranch.cli.options.service import log_argument, talks
from anabranch.cli.render.output import Output
from anabranch.cli.render.words import counted, number
from anabranch.cli.service.target import Target
from anabranch.client.aio import Service
from anabranch.core.bolt.protocol.set_sums import SetSum

SHOWN_MAX = 10
"""Ranges that are printed, of those that aren't summed."""


@click.command(name="sum")
@log_argument()
@click.option(
    "--from",
    "start",
    type=click.IntRange(0),
    help="First position of the range; by default where the log begins.",
)
@click.option(
    "--to",
    "end",
    type=click.IntRange(0),
    help="Position after the range's last; by default the settled end.",
)
@talks
def set_sum(target: Target, out: Output, log: str, start: int | None, end: int | None) -> None:
    """Print the sum that the service keeps of a range's batches.

    An audit computes the same from the batches, in any order. Batches that the
    range cuts, or that were committed before sums were kept, aren't in it: their ranges are named.
    """

    async def work(service: Service) -> SetSum:
        return await (await service.log(log, engine="bolt")).set_sum(start, end)

    found = target.run(work)
    if out.json:
        out.document(
            {
                "log": log,
                "from": found.start,
                "to": found.end,
                "sum": found.sum,
                "records": found.records,
                "summed": found.summed,
                "not_summed": found.unsummed,
            }
        )
        return
    of = f"{counted(found.summed, 'record')} of positions {found.start}..{found.end}"
    out.say(f"{found.sum:08x} of {of} (end not included)")
    for first, after in found.unsummed[:SHOWN_MAX]:
        out.say(f"not summed: positions {first}..{after}")
    if len(found.unsummed) > SHOWN_MAX:
        out.say(f"not summed: {number(len(found.unsummed) - SHOWN_MAX)} more ranges")
