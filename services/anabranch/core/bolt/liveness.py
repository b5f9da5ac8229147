"""Which brokers a leader has heard of lately: one that is silent loses its logs, one that speaks
again gets new ones.
"""

from anabranch.core.bolt.commands import FindBroker, LoseBroker
from anabranch.core.bolt.placement import LOST, Placement
from anabranch.core.types import MS, Milliseconds, Nanoseconds


class Liveness:
    """Known to the leader alone: a new one gives every broker the time that any may be silent."""

    def __init__(self, placement: Placement, now: Nanoseconds) -> None:
        self._placement = placement
        self._heard: dict[str, Nanoseconds] = {}
        self._since = now
        self._noted: set[tuple[str, int, str]] = set()
        """Changes on their way to the journal: life and the state it has until then."""

    def heard(self, broker: str, epoch: int, now: Nanoseconds) -> FindBroker | None:
        """A command, if it was thought lost."""
        self._heard[broker] = now
        seat = self._placement.seats.get(broker)
        if seat is None or seat.epoch != epoch or seat.state != LOST:
            return None
        return FindBroker(broker, epoch) if self._note(broker, epoch, seat.state) else None

    def silent(self, now: Nanoseconds, silence_ms: Milliseconds) -> list[LoseBroker]:
        limit = now - silence_ms * MS
        return [
            LoseBroker(seat.name, seat.epoch)
            for _, seat in sorted(self._placement.seats.items())
            if seat.state != LOST
            and seat.address
            and self._heard.get(seat.name, self._since) < limit
            and self._note(seat.name, seat.epoch, seat.state)
        ]

    def decided(self, broker: str, epoch: int) -> None:
        """A command about this life has been applied, or refused."""
        self._noted = {noted for noted in self._noted if noted[:2] != (broker, epoch)}

    def _note(self, broker: str, epoch: int, state: str) -> bool:
        if (broker, epoch, state) in self._noted:
            return False
        self._noted.add((broker, epoch, state))
        return True
