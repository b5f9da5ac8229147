"""The machine of one node: its journal, and what the probes and metrics of its process show."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from anabranch.core.limits import MIB
from anabranch.core.machine import Machine
from anabranch.ports import Disk
from anabranch.shell.journal.file_journal import FileJournal

SEGMENT_BYTES = 16 * MIB
"""Of the journal of a sequencer or a replica: trimmed entries leave the disk segment by segment."""


@dataclass(frozen=True, slots=True)
class NodeMachine:
    kind: str
    """The subject of its metrics."""
    machine: Machine
    role: Callable[[], str]
    obstacle: Callable[[], str | None]
    """Why nothing is expected of the machine yet."""
    counters: Any
    """None if it has none."""
    gauges: Callable[[], Any]


def node_journal(disk: Disk, cluster: str, noted: int = 0) -> FileJournal:
    """Of a sequencer or a replica, in a pod as in the process of `anabranch up`. `noted`: how far
    it is known to have gone, where that is noted.
    """
    return FileJournal(disk, cluster, segment_bytes=SEGMENT_BYTES, noted=noted)
