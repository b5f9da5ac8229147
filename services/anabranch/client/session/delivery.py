"""The delivery of one promise over n lines: it is kept when every line has acknowledged it.

The broker of a Bolt log answers for the whole log, and so does the primary of a Belfast shard:
their clients need one line. A client that must reach all replicas of a view itself needs one line
for each. If one line refuses or breaks, the delivery is over; whoever made it sends it again, over
the lines of that time.
"""

from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

from anabranch.client.session.line import Line
from anabranch.core.errors import AnabranchError
from anabranch.core.errors.refused import Refused

Q = TypeVar("Q")
A = TypeVar("A")
A_contra = TypeVar("A_contra", contravariant=True)


_REFUSALS = (AnabranchError, Refused)


class Sender(Protocol[A_contra]):
    """Made the promise, and sends it again where that is needed."""

    def answered(self, message: A_contra | AnabranchError) -> None:
        """The last acknowledgement, when all lines have given theirs; or the first refusal."""
        ...

    def lost(self, *, sent: bool) -> None:
        """A line broke. If `sent`, what it carried may have been done."""
        ...


class Delivery(Generic[Q, A]):
    """One promise's requests, from sending them to the last answer."""

    __slots__ = ("_acknowledged", "_joint", "_legs", "_objection", "_refusal", "_sender")

    def __init__(
        self,
        sender: Sender[A],
        joint: Callable[[A | AnabranchError], bool] | None = None,
        objection: Callable[[A], bool] | None = None,
    ) -> None:
        """`joint`: of these refusals one alone says nothing. If every line gives one, it is the
        answer; if some do and others acknowledge, it is as if a line had broken.

        `objection`: of acknowledgements that count as refusals.
        """
        self._sender, self._joint, self._objection = sender, joint, objection
        self._legs: list[_Leg[Q, A]] = []
        self._acknowledged = False
        """By some line."""
        self._refusal: A | AnabranchError | None = None
        """A joint one of some line."""

    @property
    def under_way(self) -> bool:
        """An answer is still expected."""
        return bool(self._legs)

    @property
    def owing(self) -> list[str]:
        """The addresses of those that haven't answered yet."""
        return [leg.line.address for leg in self._legs]

    @property
    def refusal(self) -> A | AnabranchError | None:
        """A joint refusal of some line, after which others acknowledged or broke."""
        return self._refusal

    def send(self, message: Q, *lines: Line[Q, A]) -> None:
        assert lines, "a promise is sent to somebody"
        assert not self._legs, "a promise is sent again only when the delivery before is over"
        self._acknowledged, self._refusal = False, None
        legs = self._legs = [_Leg(self, line) for line in lines]
        for leg in legs:
            leg.request = leg.line.ask(leg, message)

    def stop(self) -> None:
        """Expect no answers any more."""
        for leg in self._legs:
            leg.stop()
        self._legs = []

    def acknowledged(self, leg: "_Leg[Q, A]", message: A) -> None:
        if self._objection is not None and self._objection(message):
            self.refused(leg, message)
            return
        self._legs.remove(leg)
        self._acknowledged = True
        self._conclude(message)

    def refused(self, leg: "_Leg[Q, A]", message: A | AnabranchError) -> None:
        if self._joint is not None and self._joint(message):
            self._legs.remove(leg)
            self._refusal = message
            self._conclude(message)
            return
        self.stop()
        self._sender.answered(message)

    def broken(self, *, sent: bool) -> None:
        sent = sent or len(self._legs) > 1 or self._acknowledged
        self.stop()
        self._sender.lost(sent=sent)

    def _conclude(self, message: A | AnabranchError) -> None:
        if self._legs:
            return
        if self._refusal is not None and self._acknowledged:
            self._sender.lost(sent=True)
        else:
            self._sender.answered(message)


class _Leg(Generic[Q, A]):
    """One line's part of a delivery."""

    __slots__ = ("_delivery", "line", "request")

    def __init__(self, delivery: Delivery[Q, A], line: Line[Q, A]) -> None:
        self._delivery, self.line = delivery, line
        self.request = 0

    def stop(self) -> None:
        self.line.unheard(self.request)
        self.request = 0

    def heard(self, message: A | AnabranchError) -> None:
        self.line.unheard(self.request)
        if isinstance(message, _REFUSALS):
            self._delivery.refused(self, message)
        else:
            self._delivery.acknowledged(self, message)

    def lost(self, *, sent: bool) -> None:
        # Others may have asked on the line again by now, and one of them may have this number.
        self.request = 0
        self._delivery.broken(sent=sent)
