"""`anabranch brokers`: the pool."""

import click
from msgspec.structs import asdict

from anabranch.cli.options import talks
from anabranch.cli.output import Output, number
from anabranch.cli.service import Target


@click.command()
@talks
def brokers(target: Target, out: Output) -> None:
    """List the brokers of the pool and what each serves.

    Any broker can serve any log: these are the ones that logs are placed on, roots apart from
    forks, the forks of one tree together, and exclusive ones alone.
    """
    found = target.run(lambda service: service.brokers())
    if out.json:
        out.document({"brokers": [asdict(each) for each in found]})
        return
    out.table(
        ["BROKER", "ADDRESS", "STATE", ">ROOTS", ">TREES OF FORKS", ">EXCLUSIVE"],
        (
            (
                each.name,
                each.address or "this server",
                each.state,
                number(each.roots),
                number(each.trees),
                number(each.exclusive),
            )
            for each in found
        ),
    )
