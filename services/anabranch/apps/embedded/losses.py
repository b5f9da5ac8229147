"""Which journals of an embedded log are gone, and what can be done about it.

The protocols know a node that has lost its disk: others that keep the same entries fill it again.
Where too few are left to do that, the log isn't served, because it would begin again as an empty
one. How many are needed is the engine's to say.
"""

from collections.abc import Callable, Container, Iterable
from dataclasses import dataclass

from anabranch.apps.embedded.folders import Folders, LogFolder
from anabranch.core.errors import JournalBehind, StorageFailed


@dataclass(frozen=True, slots=True)
class JournalRules:
    """What an engine's protocols make of journals that are gone or damaged."""

    needed: Callable[[str, int], int]
    """So many nodes of this group, which has so many, must have theirs for the others' sake."""
    may_cut: Callable[[str], bool]
    """May the journal of this group's only node go back to what it was? Not if another group's
    nodes rely on what it has promised.
    """
    first: str
    """A node that every log has, and none can do without."""


def group_of(node: str) -> str:
    """What keeps the same entries as this node: the sequencers, or a shard."""
    return node.rpartition("-")[0]


def can_refill(group: str, nodes: Iterable[str], lost: Iterable[str], rules: JournalRules) -> bool:
    """Do enough of a group's nodes still have what they promised?"""
    members, gone = len(set(nodes)), len(set(lost))
    assert gone <= members, "a node that is lost was one of them"
    return members - gone >= rules.needed(group, members)


@dataclass(frozen=True, slots=True)
class Losses:
    """What is missing of one log."""

    refilled: tuple[str, ...]
    """Nodes whose journals the others fill again."""
    lost: tuple[str, ...]
    """Nodes whose journals nobody can fill."""


def judge(nodes: Iterable[str], gone: Container[str], rules: JournalRules) -> Losses:
    """Which of one log's nodes can be filled again, of those that are gone."""
    groups: dict[str, list[str]] = {}
    for node in nodes:
        groups.setdefault(group_of(node), []).append(node)
    refilled: list[str] = []
    lost: list[str] = []
    for group, members in groups.items():
        missing = [node for node in members if node in gone]
        (refilled if can_refill(group, members, missing, rules) else lost).extend(missing)
    return Losses(tuple(refilled), tuple(lost))


def losses(folders: Folders, folder: LogFolder, rules: JournalRules) -> Losses:
    nodes = folders.nodes(folder)
    return judge(nodes, [node for node in nodes if folders.is_gone(folder, node)], rules)


def refusal(folders: Folders, folder: LogFolder, lost: tuple[str, ...]) -> JournalBehind:
    """Why a log that misses these journals isn't served, and what to do."""
    node = lost[0]
    note = f"{folders.note(folder, node).path}"
    try:
        proof = f"the note {note} says that it reached entry {folders.reached(folder, node)}"
    except StorageFailed as error:
        proof = f"how far it went can't be told: {error.message}"
    if len(lost) > 1:
        proof += f"; the journals of {', '.join(lost[1:])} are missing as well"
    return JournalBehind(folders.path(folder, node), 0, proof, way_out(folders, folder))


def way_out(folders: Folders, folder: LogFolder, command: str = "anabranch up") -> str:
    """For a log of which too little is left. `command`: what serves it."""
    return (
        f"Put {folders.log_path(folder)} back from the newest back-up, with "
        f"{folders.notes_path(folder)} as it was there, and start again. Without a back-up, "
        f"`{command} --data {folders.data} --accept-loss` begins log {folder.log} anew: it is "
        "empty then, its positions are given out again, and what is left of its journals is put "
        "aside"
    )
