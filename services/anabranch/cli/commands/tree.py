"""`anabranch tree`: roots and the forks that come from them."""

from typing import TYPE_CHECKING, Any

import click

from anabranch.cli.options import talks
from anabranch.cli.render.descriptions import age, document, held_by, remaining
from anabranch.cli.render.output import Output, number, printable
from anabranch.cli.service import Target
from anabranch.client.aio import Service
from anabranch.core.bolt.protocol.commands import Description
from anabranch.core.types import Kind, Nanoseconds
from anabranch.shell.runtime.clock import Clock

if TYPE_CHECKING:
    from rich.text import Text
    from rich.tree import Tree

Forks = dict[str | None, list[Description]]
"""By their parent's name; roots, and forks whose parent is gone, by None."""


@click.command()
@click.argument("root", required=False)
@talks
def tree(target: Target, out: Output, root: str | None) -> None:
    """Show roots and their forks.

    ROOT may be any log or fork: what is shown begins there.
    """

    async def work(service: Service) -> tuple[list[Description], list[Description]]:
        top = (await service.log(root)).description if root else None
        found = [each async for each in service.logs(tree=top.root if top else None)]
        return found, [top] if top else []

    found, tops = target.run(work)
    forks = by_parent(found)
    tops = tops or forks.get(None, [])
    if out.json:
        out.document([_nested(each, forks) for each in tops])
        return
    if not tops:
        out.say("there are no logs")
    now = Clock().now()
    for top in tops:
        out.show(drawn(top, forks, now))


def by_parent(logs: list[Description]) -> Forks:
    alive = {each.name for each in logs}
    forks: Forks = {}
    for each in sorted(logs, key=lambda log: log.id):
        forks.setdefault(each.parent if each.parent in alive else None, []).append(each)
    return forks


def drawn(top: Description, forks: Forks, now: Nanoseconds) -> "Tree":
    """Level by level: forks may be a thousand deep."""
    from rich.tree import Tree

    tree = Tree(_label(top, now))
    open_branches = [(tree, top)]
    for branch, log in open_branches:
        open_branches += [(branch.add(_label(each, now)), each) for each in forks.get(log.name, [])]
    return tree


def _label(log: Description, now: Nanoseconds) -> "Text":
    from rich.text import Text

    label = Text(log.name, style="bold")
    if log.kind is Kind.ROOT:
        label.append(f"  {number(log.tail)} records", style="default not bold")
    else:
        label.append(
            f"  {log.kind.value} at {log.fork_point}, tail {log.tail}, "
            f"{number(log.own_records)} own",
            style="default not bold",
        )
    if log.promotable:
        label.append("  promotable", style="yellow not bold")
    if log.start:
        label.append(f"  from {log.start}", style="not bold dim")
    label.append(f"  {age(log, now)}", style="not bold dim")
    if log.expires_at is not None:
        label.append(f", squashed in {remaining(log, now)}", style="not bold dim")
    note = " ".join(word for word in (log.by, f"({log.why})" if log.why else "") if word)
    if note:
        label.append(f"  {printable(note)}", style="not bold italic dim")
    if held_by(log):
        label.append(f"\n{held_by(log)}", style="not bold red")
    return label


def _nested(top: Description, forks: Forks) -> dict[str, Any]:
    root: dict[str, Any] = {**document(top), "children": []}
    pending = [(root, top)]
    for holder, log in pending:
        for each in forks.get(log.name, []):
            child: dict[str, Any] = {**document(each), "children": []}
            holder["children"].append(child)
            pending.append((child, each))
    return root
