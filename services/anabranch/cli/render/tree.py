"""How a tree of forks is drawn: a line for each log, readable however deep the forks are."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from anabranch.cli.render.descriptions import age, held_by, remaining
from anabranch.cli.render.words import number, printable
from anabranch.core.bolt.protocol.commands import BOLT, Description
from anabranch.core.types import Kind, Nanoseconds

if TYPE_CHECKING:
    from rich.text import Text

Forks = dict[str | None, list[Description]]
"""By their parent's name; roots, and forks whose parent is gone, by None."""

LEVELS_DRAWN = 12
"""Guides of so many levels stand before a name; deeper ones are counted instead."""
_STEP = 4


def by_parent(logs: list[Description]) -> Forks:
    alive = {each.name for each in logs}
    forks: Forks = {}
    for each in sorted(logs, key=lambda log: log.id):
        forks.setdefault(each.parent if each.parent in alive else None, []).append(each)
    return forks


def ordered(top: Description, forks: Forks) -> Iterator[tuple[int, str, bool, Description]]:
    """Yield each log after its parent: its depth below the top, the guides of the levels above it,
    and whether it is the last of its parent's forks.
    """
    ahead = [(0, "", True, top)]
    while ahead:
        depth, guides, last, log = ahead.pop()
        yield depth, guides, last, log
        below = forks.get(log.name, [])
        own = "" if not depth else "    " if last else "│   "
        inherited = (guides + own)[-LEVELS_DRAWN * _STEP :]
        for place, fork in enumerate(reversed(below)):
            ahead.append((depth + 1, inherited, place == 0, fork))


def drawn(top: Description, forks: Forks, now: Nanoseconds) -> "Iterator[Text]":
    """Draw a line for each log, and a second one where something holds it up."""
    from rich.text import Text

    for depth, guides, last, log in ordered(top, forks):
        hidden = max(0, depth - 1 - LEVELS_DRAWN)
        margin = f"+{hidden} " if hidden else ""
        branch = ("└── " if last else "├── ") if depth else ""
        yield Text(margin + guides + branch) + _label(log, now)
        if held_by(log):
            below = ("    " if last else "│   ") if depth else ""
            yield Text(" " * len(margin) + guides + below) + Text(held_by(log), style="red")


def _label(log: Description, now: Nanoseconds) -> "Text":
    from rich.text import Text

    label = Text(log.name, style="bold")
    if log.engine != BOLT:
        label.append(f"  {log.engine} log", style="default not bold")
    elif log.kind is Kind.ROOT:
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
    return label
