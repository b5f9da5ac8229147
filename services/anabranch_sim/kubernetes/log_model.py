"""A log of SequencerSets and ShardGroups, of whichever engine, as simulated operators meet it."""

from collections.abc import Iterator, Mapping
from typing import ClassVar, Protocol

from msgspec import Struct

from anabranch.core.errors.refused import Refused
from anabranch_operator.plan.groups.report import Report, Standing


class Replica(Struct, frozen=True):
    """A shard replica's process that runs."""

    life: str
    shard: str
    replicas: tuple[str, ...]
    disk: int = 0
    """Which one it has: another knows nothing of what this one has promised."""


class Failure(Struct, frozen=True):
    """A shard failed as a whole."""

    shard: str
    number: int
    """A later failure of the same shard has a higher one."""
    replicas: tuple[str, ...]


class LogModel(Protocol):
    """Processes go by their addresses. `step` is a little while."""

    engine: ClassVar[str]
    members: tuple[str, ...]
    sequencers: dict[str, None]
    """Those of them that run."""
    replicas: dict[str, Replica]

    @property
    def leader(self) -> str: ...

    @property
    def moving(self) -> bool:
        """Is a shard about to come or go?"""
        ...

    def step(self, sequencers: Mapping[str, None], replicas: Mapping[str, Replica]) -> None: ...

    def report(self) -> Report | Refused: ...

    def leave(self, shard: str) -> Refused | None: ...

    def join(self, shard: str) -> Refused | None: ...

    def trim(self) -> None:
        """All that is final."""
        ...

    def standing(self, shard: str) -> Standing | None: ...

    def counts_on(self, shard: str) -> bool:
        """Would appends or reads stop without it?"""
        ...

    def holds(self, shard: str) -> bool:
        """Is it to keep what can still be asked for?"""
        ...

    def serves(self, node: str) -> bool:
        """What a replica that runs answers when it is asked whether it is ready."""
        ...

    def orders(self, node: str) -> bool:
        """The same of a sequencer."""
        ...

    def failures(self) -> Iterator[Failure]: ...
