"""One try of an append: at all members of the view, and in mode st also at all replicas of the
shard that gets its data (LazyLog, 4.1 and 5.1).
"""

from collections.abc import Sequence
from typing import Protocol

from anabranch.client.erwin.dialect import FromNode, NodeLine, ToNode
from anabranch.client.session.delivery import Delivery
from anabranch.core.errors import (
    AnabranchError,
    BadFrame,
    OutcomeUnknown,
    QuotaExceeded,
    RequestForgotten,
    ShardAway,
)
from anabranch.core.errors.refused import Refused
from anabranch.core.erwin.protocol.messages import Stored
from anabranch.core.sequencing.protocol.messages import Taken

_JOINT = (QuotaExceeded.code, RequestForgotten.code, ShardAway.code)


class Sender(Protocol):
    """The append."""

    def held(self) -> None:
        """Everybody holds it."""
        ...

    def refused(self, error: AnabranchError, *, sent: bool) -> None:
        """Somebody refused it. If `sent`, a member may have taken it all the same."""
        ...

    def lost(self, *, sent: bool, refusal: AnabranchError | None) -> None:
        """A line broke, or nobody can tell. If `sent`, it may be ordered. `refusal`: what one of
        those said who didn't take it.
        """
        ...

    def known_elsewhere(self, shard: str) -> None:
        """A member knows it already, and its data is at this shard."""
        ...


class Attempt:
    """Ends with one call of its sender, unless it is stopped."""

    __slots__ = ("_partly", "_parts", "_sender", "_shard", "_single")

    def __init__(self, sender: Sender) -> None:
        self._sender = sender
        self._shard = ""
        self._partly = False
        """The members hold it, or the replicas do."""
        self._single = False
        """The view has one member."""
        self._parts: list[_Part] = []

    @property
    def under_way(self) -> bool:
        return bool(self._parts)

    @property
    def owing(self) -> list[str]:
        """Those that haven't answered yet."""
        return [node for part in self._parts for node in part.delivery.owing]

    def send(
        self,
        message: ToNode,
        members: Sequence[NodeLine],
        data: ToNode | None = None,
        replicas: Sequence[NodeLine] = (),
        shard: str = "",
    ) -> None:
        """`data`: what the replicas of `shard` are sent, in mode st."""
        assert not self._parts, "an append is tried again only when the try before is over"
        self._shard, self._partly, self._single = shard, False, len(members) == 1
        # Data first: a shard that learns of a row waits for its data.
        asked = [] if data is None else [(_Part(self, of_members=False), data, replicas)]
        asked.append((_Part(self, of_members=True), message, members))
        self._parts = [part for part, _, _ in asked]
        for part, each, lines in asked:
            part.delivery.send(each, *lines)

    def stop(self) -> None:
        for part in self._parts:
            part.delivery.stop()
        self._parts = []

    def answered(self, part: "_Part", message: FromNode | AnabranchError) -> None:
        match message:
            case Taken(shard) if self.knows_another(message):
                self.stop()
                self._sender.known_elsewhere(shard)
            case Taken() | Stored():
                self._parts.remove(part)
                self._partly = True
                if not self._parts:
                    self._sender.held()
            case Refused():
                error = message.error()
                # Whoever refuses has taken nothing, unless it says that it can't tell. Without a
                # member's id no data is ever ordered: replicas of a shard don't count.
                all_refuse = part.of_members and (self._single or _joint(message))
                plain = all_refuse and not isinstance(error, OutcomeUnknown)
                self.stop()
                self._sender.refused(error, sent=not plain)
            case AnabranchError():
                self.stop()
                self._sender.refused(message, sent=True)
            case _:
                self.stop()
                name = type(message).__name__
                error = BadFrame(f"an append was answered with {name}")
                self._sender.refused(error, sent=True)

    def knows_another(self, message: FromNode) -> bool:
        """Does a member know this append with another shard than the one that is sent its data?"""
        return isinstance(message, Taken) and message.shard not in ("", self._shard)

    def lost(self, part: "_Part", *, sent: bool) -> None:
        others = len(self._parts) > 1 or self._partly
        refusal = part.delivery.refusal
        self.stop()
        error = refusal.error() if isinstance(refusal, Refused) else None
        self._sender.lost(sent=sent or others, refusal=error)


class _Part:
    """At the members, or at the replicas."""

    __slots__ = ("_attempt", "delivery", "of_members")

    def __init__(self, attempt: Attempt, *, of_members: bool) -> None:
        self._attempt, self.of_members = attempt, of_members
        self.delivery: Delivery[ToNode, FromNode] = Delivery(self, _joint, attempt.knows_another)

    def answered(self, message: FromNode | AnabranchError) -> None:
        self._attempt.answered(self, message)

    def lost(self, *, sent: bool) -> None:
        self._attempt.lost(self, sent=sent)


def _joint(message: FromNode | AnabranchError) -> bool:
    """A member that is over the log's quota, has forgotten a producer, or knows its shard as
    closed, says nothing of what others hold: only if all refuse the append, it is certainly in no
    ring.
    """
    return isinstance(message, Refused) and message.code in _JOINT
