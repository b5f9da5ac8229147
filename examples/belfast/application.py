"""What an application is, whichever it is: records to ingest, readers that compute ahead of the
order, and what must come out of it all.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import NamedTuple, Protocol

from anabranch.client.session.records import LogRecord
from anabranch.core.belfast.protocol.messages import Where


class Ingested(NamedTuple):
    """A record to be appended, and whose: sources are spread over shards."""

    source: int
    key: bytes
    value: bytes


class Undo(NamedTuple):
    """How to take one batch back, and what it would say to the world once it is certain."""

    rows: list[tuple[str, tuple[object, ...]]]
    """Statements that bring the old rows back, the last change first."""
    state: object
    """What the application keeps in memory, as it was before."""
    alerts: list[str]


class Reader(Protocol):
    """One downstream task: it computes on whatever has come, may have to take it back, and tells
    the world of nothing that isn't confirmed.
    """

    def do(self, records: Sequence[LogRecord]) -> Undo: ...

    def undo(self, records: Sequence[LogRecord], done: Undo) -> None: ...

    def on_confirm(self, records: Sequence[LogRecord], done: Undo) -> None: ...

    def output(self) -> list[tuple[object, ...]]:
        """Every row and every alert: two runs over the same records have the same."""
        ...

    def close(self) -> None: ...


class Interest(NamedTuple):
    """What a reader subscribes to: all shards if it names none, all records if it asks for none."""

    shards: tuple[str, ...] | None = None
    where: Where | None = None


class Application(Protocol):
    name: str

    def records(self, rng: Random) -> Iterator[Ingested]: ...

    def interests(self, shards: Sequence[str], readers: int) -> list[Interest]: ...

    def reader(self, database: Path) -> Reader: ...
