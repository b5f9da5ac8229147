"""Which brokers a leader has heard of lately: one that is silent loses its logs, one that speaks
again gets new ones.
"""

from anabranch.core.bolt.protocol.commands import (
    Command,
    Done,
    FindBroker,
    ForgetBroker,
    LoseBroker,
    Outcome,
    RegisterBroker,
)
from anabranch.core.bolt.state.placement import LOST, READY, Placement
from anabranch.core.types import MS, Milliseconds, Nanoseconds


class Liveness:
    """Known to the leader alone: a new one gives every broker the time that any may be silent.

    A life is heard of by itself: one that was replaced, and speaks on, keeps no other alive.
    """

    def __init__(self, placement: Placement, now: Nanoseconds) -> None:
        self._placement = placement
        self._heard: dict[str, Nanoseconds] = {}
        self._since = now
        self._deciding: set[tuple[str, int]] = set()
        """Lives about which a command is on its way to the journal."""

    def heard(self, broker: str, epoch: int, now: Nanoseconds) -> FindBroker | None:
        """A command, if it was thought lost."""
        seat = self._placement.seats.get(broker)
        if seat is None or seat.epoch != epoch:
            return None
        self._heard[broker] = now
        if seat.state != LOST or (broker, epoch) in self._deciding:
            return None
        return FindBroker(broker, epoch)

    def silent(self, now: Nanoseconds, silence_ms: Milliseconds) -> list[LoseBroker]:
        assert silence_ms > 0, "everybody would be lost"
        limit = now - silence_ms * MS
        return [
            LoseBroker(seat.name, seat.epoch)
            for _, seat in sorted(self._placement.seats.items())
            if seat.state == READY
            and seat.address
            and self._heard.get(seat.name, self._since) < limit
            and (seat.name, seat.epoch) not in self._deciding
        ]

    def proposed(self, change: LoseBroker | FindBroker) -> None:
        assert (change.broker, change.epoch) not in self._deciding, "it is on its way"
        self._deciding.add((change.broker, change.epoch))

    def refused(self, command: Command) -> None:
        """It wasn't journaled: it is to be proposed again."""
        if isinstance(command, LoseBroker | FindBroker):
            self._deciding.discard((command.broker, command.epoch))

    def applied(self, command: Command, outcome: Outcome, now: Nanoseconds) -> None:
        if isinstance(command, RegisterBroker):
            self._heard[command.broker] = now
        elif isinstance(command, ForgetBroker):
            if isinstance(outcome, Done):
                self._heard.pop(command.broker, None)
        else:
            self.refused(command)
