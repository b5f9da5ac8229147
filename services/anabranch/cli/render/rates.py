"""How fast logs grow, from what two looks at them found."""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from anabranch.cli.render.descriptions import document
from anabranch.cli.service.engines import Bounds
from anabranch.core.bolt.protocol.commands import Description
from anabranch.core.types import LogId, Position


class Rated(NamedTuple):
    """A log, and how fast it grew since the last look; None at the first."""

    log: Description
    tail: Position
    records_per_s: float | None

    def document(self) -> dict[str, Any]:
        rate = None if self.records_per_s is None else round(self.records_per_s, 1)
        return {**document(self.log), "tail": self.tail, "records_per_s": rate}


class LogRates:
    """Remembers where each log ended at the last look."""

    def __init__(self) -> None:
        self._tails: dict[LogId, Position] = {}
        self._at_s = 0.0

    def step(self, seen: Iterable[tuple[Description, Bounds]], now_s: float) -> Iterator[Rated]:
        """Rate the logs, fastest first, then by name. Records that a promotion brings count."""
        before, took_s = self._tails, now_s - self._at_s
        self._tails, self._at_s = {}, now_s
        rated: list[Rated] = []
        for log, now in seen:
            self._tails[log.id] = now.tail
            last, rate = before.get(log.id), None
            if last is not None and took_s > 0:
                rate = max(0, now.tail - last) / took_s
            rated.append(Rated(log, now.tail, rate))
        yield from sorted(rated, key=lambda each: (-(each.records_per_s or 0), each.log.name))
