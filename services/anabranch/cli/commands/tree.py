"""`anabranch tree`: roots and the forks that come from them."""

import click

from anabranch.cli.options.service import talks
from anabranch.cli.render.descriptions import document
from anabranch.cli.render.output import Output
from anabranch.cli.render.tree import by_parent, drawn, ordered
from anabranch.cli.service.target import Target
from anabranch.client.aio import Service
from anabranch.core.bolt.protocol.commands import Description
from anabranch.shell.runtime.clock import Clock


@click.command()
@click.argument("root", required=False)
@talks
def tree(target: Target, out: Output, root: str | None) -> None:
    """Show roots and their forks.

    ROOT may be any log or fork: what is shown begins there. Guides stand for the twelve levels
    above a log; `+N` before them says how many more there are.
    """

    async def work(service: Service) -> tuple[list[Description], list[Description]]:
        top = None if root is None else (await service.log(root)).description
        found = [each async for each in service.logs(tree=top.root if top else None)]
        return found, [top] if top else []

    found, tops = target.run(work)
    forks = by_parent(found)
    tops = tops or forks.get(None, [])
    if out.json:
        out.document(
            [
                {"root": top.root, "logs": [document(log) for *_, log in ordered(top, forks)]}
                for top in tops
            ]
        )
        return
    if not tops:
        out.say("there are no logs")
    now = Clock().now()
    for top in tops:
        out.draw(drawn(top, forks, now))
