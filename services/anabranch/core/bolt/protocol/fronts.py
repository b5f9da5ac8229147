"""The lazy front of a log: what its leader and its controller ask of the log (decision 62).

Structs are arrays on the wire and in the journal: fields are only ever added at the end.
"""

import msgspec

from anabranch.core.sequencing.protocol.ids import AppendId
from anabranch.core.sequencing.view import View
from anabranch.core.types import LogId, Milliseconds, Position


class FrontEpoch(msgspec.Struct, frozen=True, array_like=True, order=True, gc=False):
    """One leader's time to order: the log takes batches of its latest epoch and of no other."""

    view: int
    begun: int
    """How often the leader of this view began; 0: the controller has closed the view before."""


NO_EPOCH = FrontEpoch(0, 0)


class FrontMark(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Which batch of the front a row is."""

    epoch: FrontEpoch
    number: int
    """Counts the batches of the epoch from 1; sent again, a batch keeps its number."""
    released: Position
    """All replicas have dropped what lies below this offset."""


class FrontConfiguration(msgspec.Struct, frozen=True, kw_only=True, array_like=True, tag="front"):
    """What the front's controllers have decided last; the answer to `LeadFront` too."""

    version: int = 0
    term: int = 0
    """Of the controller that decided it."""
    view: View | None = None
    sequencers: tuple[str, ...] = ()
    """Nodes that may be members of a view."""
    fsync: bool = True
    lost_views: tuple[tuple[int, Milliseconds], ...] = ()
    """Views of which no member was left, each with when that was found."""
    ending: bool = False
    """The log's appends become direct: sequencers take none, and the leader empties the rings."""


class LeadFront(msgspec.Struct, frozen=True, array_like=True, tag="lead-front"):
    """A controller begins: it gets a term above all earlier ones, and the configuration."""

    log: LogId
    sequencers: tuple[str, ...]


class ConfigureFront(msgspec.Struct, frozen=True, array_like=True, tag="configure-front"):
    """The next configuration, by the controller of this term; refused if a later one began."""

    log: LogId
    configuration: FrontConfiguration


class OpenFront(msgspec.Struct, frozen=True, array_like=True, tag="open-front"):
    """From here on the log takes batches of this epoch and refuses those of earlier ones. Asked
    again, it is answered again.
    """

    log: LogId
    epoch: FrontEpoch


class FrontOpened(msgspec.Struct, frozen=True, array_like=True, tag="front-opened"):
    """Which records the log holds as of the opening."""

    records: Position
    """So many came through the front: the next one's offset."""
    ids: list[tuple[AppendId, Position]]
    """Of appends that some replica may still hold, each with its first record's offset."""


class AppendFront(msgspec.Struct, frozen=True, kw_only=True, array_like=True, tag="append-front"):
    """The leader to a broker: commit these record batches, in this order. Answered as an append."""

    log: LogId
    mark: FrontMark
    batches: list[bytes]


class EndFront(msgspec.Struct, frozen=True, array_like=True, tag="end-front"):
    """The leader of a front that is to end: its ring is empty, and nothing enters it any more."""

    log: LogId
    epoch: FrontEpoch
    records: Position
    """So many it has had committed, in all."""


class ReadFront(msgspec.Struct, frozen=True, array_like=True, tag="read-front"):
    """The controller that leads, again and again: is the front to end?"""

    log: LogId


class FindReceipt(msgspec.Struct, frozen=True, array_like=True, tag="find-receipt"):
    """The receipt of a record that came through the front, by its offset."""

    log: LogId
    offset: Position


FrontCommand = LeadFront | ConfigureFront | OpenFront | EndFront
"""What a front's machines have the log do; each may be repeated."""

FrontRequest = FrontCommand | AppendFront | ReadFront
"""All that a front's machines ask of their log. From a process of its own such a request comes
within `messages.Order`, for which that process needs a right.
"""

FrontAnswer = FrontConfiguration | FrontOpened
