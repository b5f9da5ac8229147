"""What brokers and the metadata write to each other. Letters may be lost, repeated or late."""

import msgspec

from anabranch.core.bolt.protocol.commands import (
    Command,
    Outcome,
)
from anabranch.core.bolt.protocol.compaction import Copied
from anabranch.core.bolt.protocol.queries import Answer, Query
from anabranch.core.errors.refused import Refused
from anabranch.core.types import LogId, Position


class Propose(msgspec.Struct, frozen=True, array_like=True, tag="propose"):
    """Broker to metadata: please do this once."""

    token: int
    request: bytes
    command: Command
    digest: int = 0


class Applied(msgspec.Struct, frozen=True, array_like=True, tag="applied"):
    token: int
    outcome: Outcome


class Ask(msgspec.Struct, frozen=True, array_like=True, tag="ask"):
    token: int
    query: Query


class QueryAnswer(msgspec.Struct, frozen=True, array_like=True, tag="told"):
    token: int
    answer: Answer


class Watch(msgspec.Struct, frozen=True, array_like=True, tag="watch"):
    """Tell me of these logs' tails, settled positions and generations, now and whenever they
    change.

    Repeated every `watch_ms`, with the version last heard, so that a lost message or a new leader
    costs one interval; a watch that is not repeated lapses.
    """

    logs: list[tuple[LogId, int]]


class Unwatch(msgspec.Struct, frozen=True, array_like=True, tag="unwatch"):
    logs: list[LogId]


class Moved(msgspec.Struct, frozen=True, array_like=True, tag="moved"):
    """To a watcher. `version` is the journal's index and only grows; an older one that comes late
    is dropped.

    When `generation` is new, a promotion moved records: those below `diverges` are as they were,
    those from there on must be forgotten by whoever saw them as speculative. Below the settled
    position that a watcher knew before, nothing ever moves, whatever `diverges` says.
    """

    log: LogId
    version: int
    tail: Position
    settled: Position
    generation: int
    diverges: Position
    append_blocked: str | None = None
    undecided: str | None = None
    ended: Refused | None = None
    """The log is no more: promoted, squashed or deleted."""
    after: int = -1
    """The version told before this one, which `diverges` counts from."""


class Alive(msgspec.Struct, frozen=True, array_like=True, tag="alive"):
    """A broker to every member of the metadata group, each `alive_ms`: I am here, who leads?"""

    epoch: int


class Leading(msgspec.Struct, frozen=True, array_like=True, tag="leading"):
    """A member to a broker: write to me. The leader of a higher term is the later one."""

    term: int
    epoch: int = 0
    """Of the broker's life that was registered last: an earlier one has been replaced."""


class CopyExtents(msgspec.Struct, frozen=True, array_like=True, tag="copy"):
    """The leader to a broker: copy these extents of a log into an object of its own, when there is
    time, and have them swapped for it. So many in turn are to be one there.

    Nothing is answered: the leader sees the swap, and asks another if it never comes.
    """

    log: LogId
    extents: list[Copied]
    joined: list[int]


ToMetadata = Propose | Ask | Watch | Unwatch | Alive
FromMetadata = Applied | QueryAnswer | Moved | Leading | CopyExtents
