"""What a session wants done, and what it wants to be told: data, as with every machine here."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from anabranch.core.bolt.protocol.messages import ClientMessage, ServerMessage
from anabranch.core.errors import AnabranchError
from anabranch.core.machine import SetTimer, TimerFired, Value

if TYPE_CHECKING:
    from anabranch.client.bolt.producer import Pledge
    from anabranch.client.bolt.subscription import Subscription
    from anabranch.client.session.call import Call


class Dial(Value, frozen=True):
    """Open a connection; report Connected or Disconnected."""

    line: int = 0
    """Which line: a session has one for each broker that it talks to."""
    address: str = ""
    """Where that broker listens."""


class HangUp(Value, frozen=True):
    """Close this line's connection, or dial no longer, and report nothing more of it."""

    line: int = 0


class Transmit(Value, frozen=True):
    """Write this request on this line's connection, after those before it."""

    request: int
    message: ClientMessage
    line: int = 0


class Answered(Value, frozen=True):
    """A call has its answer or its error."""

    call: "Call"


class Settled(Value, frozen=True):
    """What became of this batch of appends is known, or known to stay unknown."""

    pledge: "Pledge"


class Roomy(Value, frozen=True):
    """Appends that were refused as Overloaded may be tried again."""


class Arrived(Value, frozen=True):
    """A subscription has news, or has ended."""

    subscription: "Subscription"


Effect = Dial | HangUp | Transmit | Answered | Settled | Roomy | Arrived | SetTimer


class Connected(Value, frozen=True):
    """The connection that was asked for is open."""

    line: int = 0
    token: str | None = None
    """To be shown on this connection, in place of the settings'."""


class Disconnected(Value, frozen=True):
    """It could not be opened, or has broken: what was in it may or may not have arrived."""

    reason: str
    line: int = 0


class Heard(Value, frozen=True):
    """Replies, in the order in which they came on this connection."""

    replies: Sequence[tuple[int, ServerMessage | AnabranchError]]
    line: int = 0


class Asked(Value, frozen=True):
    call: "Call"


class Dropped(Value, frozen=True):
    """Nobody waits for this call any more."""

    call: "Call"


class Written(Value, frozen=True):
    """Producers were given records: once after any number of them."""


class Opened(Value, frozen=True):
    subscription: "Subscription"


class Taken(Value, frozen=True):
    """The application has taken so many bytes off this subscription."""

    subscription: "Subscription"
    bytes: int


class Left(Value, frozen=True):
    """The application wants no more of this subscription."""

    subscription: "Subscription"


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
