"""What a session of Belfast wants done, and what it wants to be told."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from anabranch.core.belfast.protocol.messages import ToClient, ToServer, Welcome
from anabranch.core.errors import AnabranchError
from anabranch.core.machine import SetTimer, TimerFired, Value

if TYPE_CHECKING:
    from anabranch.client.belfast.appends import Pledge
    from anabranch.client.belfast.call import Call
    from anabranch.client.belfast.subscriber import Subscriber


class Dial(Value, frozen=True):
    """Open a connection to this node; report Connected or Disconnected."""

    node: str


class HangUp(Value, frozen=True):
    """Close it, or dial no longer, and report nothing more of it."""

    node: str


class Transmit(Value, frozen=True):
    """Write this request to the node, after those before it."""

    node: str
    request: int
    message: ToServer


class Answered(Value, frozen=True):
    """A call has its answer or its error."""

    call: "Call"


class Settled(Value, frozen=True):
    """What became of this batch of appends is known, or known to stay unknown."""

    pledge: "Pledge"


class Roomy(Value, frozen=True):
    """Appends that were refused as Overloaded may be tried again."""


class Arrived(Value, frozen=True):
    """A subscription may have something to take, or has ended."""

    subscriber: "Subscriber"


Effect = Dial | HangUp | Transmit | Answered | Settled | Roomy | Arrived | SetTimer


class Connected(Value, frozen=True):
    """The node let us in."""

    node: str
    welcome: Welcome


class Disconnected(Value, frozen=True):
    """It could not be opened, or has broken: what was in it may or may not have arrived."""

    node: str
    reason: str
    refusal: AnabranchError | None = None
    """What the node said, if it won't have us."""


class Heard(Value, frozen=True):
    """Replies, in the order in which they came from this node."""

    node: str
    replies: Sequence[tuple[int, ToClient]]


class Asked(Value, frozen=True):
    call: "Call"


class Dropped(Value, frozen=True):
    """Nobody waits for this call any more."""

    call: "Call"


class Written(Value, frozen=True):
    """Appends were added: once after any number of them."""


class Opened(Value, frozen=True):
    subscriber: "Subscriber"


class Taken(Value, frozen=True):
    """The application has taken something of it."""

    subscriber: "Subscriber"


class Left(Value, frozen=True):
    """The application wants no more of it."""

    subscriber: "Subscriber"


class Ended(Value, frozen=True):
    """Close: whatever waits still is told so."""


Event = (
    Connected
    | Disconnected
    | Heard
    | Asked
    | Dropped
    | Written
    | Opened
    | Taken
    | Left
    | Ended
    | TimerFired
)
