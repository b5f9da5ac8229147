"""How fast logs grow, from what two looks at them found."""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from anabranch.cli.render.descriptions import document
from anabranch.core.bolt.protocol.commands import Description
from anabranch.core.types import LogId, Position


class Look(NamedTuple):
    """What was found of one log."""

    log: Description
    tail: Position | None
    obstacle: str = ""
    """Why its tail isn't known."""
    held_up: str = ""
    """What keeps the log from ordering what it has acknowledged."""


class Rated(NamedTuple):
    """A log, and how fast it grew since the last look; None if one of the two tails isn't known."""

    look: Look
    records_per_s: float | None

    def document(self) -> dict[str, Any]:
        rate = None if self.records_per_s is None else round(self.records_per_s, 1)
        look = self.look
        found = {**document(look.log), "tail": look.tail, "records_per_s": rate}
        reasons = {"obstacle": look.obstacle, "held_up": look.held_up}
        return {**found, **{name: why for name, why in reasons.items() if why}}


class LogRates:
    """Remembers where each log ended at the last look."""

    def __init__(self) -> None:
        self._tails: dict[LogId, Position] = {}
        self._at_s = 0.0

    def step(self, seen: Iterable[Look], now_s: float) -> Iterator[Rated]:
        """Rate the logs, fastest first, then by name. Records that a promotion brings count."""
        before, took_s = self._tails, now_s - self._at_s
        self._tails, self._at_s = {}, now_s
        rated: list[Rated] = []
        for look in seen:
            last, rate = before.get(look.log.id), None
            if look.tail is not None:
                self._tails[look.log.id] = look.tail
                if last is not None and took_s > 0:
                    rate = max(0, look.tail - last) / took_s
            rated.append(Rated(look, rate))
        yield from sorted(rated, key=lambda each: (-(each.records_per_s or 0), each.look.log.name))
