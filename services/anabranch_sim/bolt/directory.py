"""Which logs the clients know of: they tell each other, as programs of one house do."""

from dataclasses import dataclass
from random import Random

from anabranch.core.bolt.protocol.commands import Description
from anabranch.core.errors import AnabranchError
from anabranch.core.types import Kind, LogId, Position


@dataclass(slots=True)
class Known:
    """One log, as somebody saw it last."""

    log: LogId
    name: str
    kind: Kind
    promotable: bool
    parent: LogId | None
    fork_point: Position
    tail: Position = 0
    start: Position = 0
    over: bool = False
    """Somebody was told that it is no more."""


class Directory:
    def __init__(self) -> None:
        self.logs: dict[LogId, Known] = {}
        self.ids: dict[str, LogId] = {}
        self._forks = 0
        self._turns = 0

    def turn(self) -> int:
        """Of those who take turns at changing logs."""
        self._turns += 1
        return self._turns

    def fork_name(self) -> str:
        self._forks += 1
        return f"f{self._forks}"

    def learn(self, told: Description) -> Known:
        known = self.logs.get(told.id)
        if known is None:
            parent = self.ids.get(told.parent) if told.parent else None
            known = Known(told.id, told.name, told.kind, told.promotable, parent, told.fork_point)
            self.logs[told.id] = known
            self.ids[told.name] = told.id
        known.tail, known.start = max(known.tail, told.tail), max(known.start, told.start)
        return known

    def over(self, log: LogId, error: AnabranchError) -> None:
        if error.code in {"promoted", "squashed", "unknown-log"} and log in self.logs:
            self.logs[log].over = True

    def living(self) -> list[Known]:
        return [known for known in self.logs.values() if not known.over]

    def undecided(self) -> list[Known]:
        return [known for known in self.living() if known.promotable]

    def any(self, rng: Random) -> Known | None:
        """Mostly one that is alive, sometimes one that isn't, rather a young one."""
        living = self.living()
        if self.logs and (not living or rng.random() < 0.05):
            return rng.choice(list(self.logs.values()))
        if not living:
            return None
        return rng.choice(living[-3:] if rng.random() < 0.5 else living)
