"""What a session asks of its driver, and what a driver reports to it: data, as with every machine.

`Q` is what clients of an engine send, `A` what its servers answer.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from anabranch.core.errors import AnabranchError
from anabranch.core.machine import SetTimer, TimerFired, Value

if TYPE_CHECKING:
    from anabranch.client.session.call import Call
    from anabranch.client.session.parts import Subscription
    from anabranch.client.session.pledge import Promise

Q = TypeVar("Q")
A = TypeVar("A")


class Dial(Value, frozen=True):
    """Open a connection; report Connected or Disconnected."""

    line: int = 0
    """The session has one line for each address that it talks to."""
    address: str = ""
    """Where the server listens."""


class HangUp(Value, frozen=True):
    """Close this line's connection, or stop dialing, and report nothing more about it."""

    line: int = 0


class Transmit(Value, Generic[Q], frozen=True):
    """Write this request on this line's connection, after those before it."""

    request: int
    message: Q
    line: int = 0


class Answered(Value, frozen=True):
    """A call has its answer or its error."""

    call: "Call[Any, Any, Any]"


class Settled(Value, frozen=True):
    """The outcome of this batch of appends is known, or known to stay unknown."""

    pledge: "Promise[Any]"


class Roomy(Value, frozen=True):
    """Appends that were refused as Overloaded may be tried again."""


class Arrived(Value, frozen=True):
    """A subscription has something to take, or has ended."""

    subscription: "Subscription"


Effect = Dial | HangUp | Transmit[Q] | Answered | Settled | Roomy | Arrived | SetTimer


class Connected(Value, frozen=True):
    """The connection of this line is open."""

    line: int = 0
    token: str | None = None
    """The token to show on this connection, in place of the one in the settings."""


class Disconnected(Value, frozen=True):
    """The connection couldn't be opened, or broke: requests in it may or may not have arrived."""

    reason: str
    line: int = 0


class Heard(Value, Generic[A], frozen=True):
    """Replies, in the order in which they came on this connection."""

    replies: Sequence[tuple[int, A | AnabranchError]]
    line: int = 0


class Asked(Value, frozen=True):
    """A program makes this call."""

    call: "Call[Any, Any, Any]"


class Dropped(Value, frozen=True):
    """Nobody waits for this call any more."""

    call: "Call[Any, Any, Any]"


class Written(Value, frozen=True):
    """Producers were given records; reported once after any number of them."""


class Opened(Value, frozen=True):
    """A program subscribes."""

    subscription: "Subscription"


class Taken(Value, frozen=True):
    """The application has taken something off this subscription."""

    subscription: "Subscription"
    bytes: int = 0
    """Credit that this frees; 0 for a subscription that counts its credit itself."""


class Left(Value, frozen=True):
    """The application wants no more of this subscription."""

    subscription: "Subscription"


class Ended(Value, frozen=True):
    """Close the session: calls, appends and subscriptions that still wait get an error."""


Event = (
    Connected
    | Disconnected
    | Heard[A]
    | Asked
    | Dropped
    | Written
    | Opened
    | Taken
    | Left
    | Ended
    | TimerFired
)
