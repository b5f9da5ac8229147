"""A subscription's events, given out one at a time, and where another subscription would go on."""

from collections import deque
from typing import TYPE_CHECKING

from anabranch.client.session.records import Confirm, Deliver, Event
from anabranch.core.errors import BadRequest
from anabranch.core.types import Position

if TYPE_CHECKING:
    from anabranch.client.belfast.subscriber import Subscriber


class EventQueue:
    """Between a subscriber, which hands out portions, and a program that takes single events."""

    def __init__(self, subscriber: "Subscriber") -> None:
        self.subscriber = subscriber
        self._at_hand: deque[Event] = deque()
        self._final_before: Position = subscriber.final
        """What `final` was before the last portion was taken."""
        self._broken = False

    @property
    def final(self) -> Position:
        """The program knows everything below to be final. At any moment, a program that acts only
        on what is confirmed goes on from here with nothing repeated or left out.
        """
        # A copy: without an event loop another thread may be taking events.
        at_hand = self._at_hand.copy()
        if self._broken or self._confirms(at_hand):
            return self._final_before
        final = self.subscriber.final
        for event in at_hand:
            if isinstance(event, Deliver):
                return min(final, event.record.position)
        return final

    def _confirms(self, at_hand: deque[Event]) -> bool:
        """A portion has at most one Confirm, ahead of its records: nothing of it counts yet."""
        return bool(at_hand) and isinstance(at_hand[0], Confirm)

    @property
    def empty(self) -> bool:
        return not self._at_hand

    def pop(self) -> Event | None:
        """The next event; None if a portion must be taken first."""
        return self._at_hand.popleft() if self._at_hand else None

    def pop_all(self) -> list[Event]:
        events = list(self._at_hand)
        self._at_hand.clear()
        return events

    def check(self) -> None:
        if self._broken:
            reason = "the function in its `where` raised an error: subscribe again from `final`"
            raise BadRequest("this subscription", reason)

    def take(self, records_max: int) -> None:
        """Take the next portion, once the one before was given out."""
        assert not self._at_hand, "portions are taken one after the other"
        self.check()
        self._final_before = self.final
        # What the caller's function raised at is lost with its portion, and must not be passed.
        self._broken = True
        self._at_hand.extend(self.subscriber.take(records_max))
        self._broken = False
