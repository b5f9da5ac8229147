"""A batch of appends to an Erwin log, and the id under which its members know it."""

from functools import partial
from typing import Protocol

from anabranch.client.erwin.attempt import Attempt
from anabranch.client.erwin.call import Call
from anabranch.client.erwin.outstanding import Outstanding
from anabranch.client.session.pledge import Promise
from anabranch.core.errors import AnabranchError
from anabranch.core.sequencing.protocol.ids import AppendId
from anabranch.core.types import Milliseconds, Position


class Producer(Protocol):
    """Numbers the pledge, and sends it until it is known what became of it."""

    def held(self, pledge: "Pledge") -> None: ...
    def refused(self, pledge: "Pledge", error: AnabranchError, *, sent: bool) -> None: ...
    def lost(self, pledge: "Pledge", *, sent: bool, refusal: AnabranchError | None) -> None: ...
    def known_elsewhere(self, pledge: "Pledge", shard: str) -> None: ...
    def expire(self, pledge: "Pledge") -> None: ...


class Pledge(Promise[AppendId]):
    """The records of one batch. Acknowledged, it has an id and no position yet."""

    __slots__ = (
        "attempt",
        "epoch",
        "finding",
        "first",
        "id",
        "kept",
        "lowest",
        "outstanding",
        "place",
        "producer",
        "request_id",
        "retry_unknown",
        "shard",
        "since",
        "unsure",
        "view",
        "wants_position",
    )

    def __init__(
        self,
        producer: Producer,
        timeout_ms: Milliseconds,
        *,
        retry_unknown: bool = False,
        request_id: str = "",
    ) -> None:
        super().__init__(timeout_ms)
        self.producer = producer
        self.request_id = request_id
        """Its caller's, under which the log appends it once however often it is sent."""
        self.retry_unknown = retry_unknown
        self.wants_position = False
        """Somebody asks for its position, or is going to."""
        self.id: AppendId | None = None
        self.outstanding: Outstanding | None = None
        """Of the identity that its id is of."""
        self.lowest = 0
        """What its producer's lowest sequence was when it was sent first under its id."""
        self.place = 0
        """Among all of its producer, in the order in which they were appended."""
        self.attempt = Attempt(self)
        self.shard = ""
        """Mode st: where its data is sent; empty: not chosen yet."""
        self.epoch = 0
        """The epoch of that shard in which it was sent last, or is to be sent next."""
        self.kept = False
        """Acknowledged, and members know its id."""
        self.since = self.view = 0
        """The views in which it was sent under its id, first and last."""
        self.unsure = False
        """It may be in the log under an id that it had before."""
        self.first: Position | None = None
        """Of its first record, once somebody has asked."""
        self.finding: Call | None = None
        """Asks for that."""

    def held(self) -> None:
        self.producer.held(self)

    def refused(self, error: AnabranchError, *, sent: bool) -> None:
        self.producer.refused(self, error, sent=sent)

    def lost(self, *, sent: bool, refusal: AnabranchError | None) -> None:
        self.producer.lost(self, sent=sent, refusal=refusal)

    def known_elsewhere(self, shard: str) -> None:
        self.producer.known_elsewhere(self, shard)

    def expiring(self) -> partial[None]:
        """To be called when its time is over."""
        return partial(_expire, self)


def _expire(pledge: Pledge) -> None:
    pledge.producer.expire(pledge)
