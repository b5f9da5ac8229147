"""What a client may be told: who it is, how long to try, how much to hold."""

import msgspec

from anabranch.core.limits import KIB, MIB
from anabranch.core.records.codecs import Codec


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """Every interval and bound of a client, named, with its unit last."""

    client: str = "anabranch-python"
    """What this program calls itself: the server's metrics and a fork's `by` show it."""

    token: str | None = None
    """The server's token, if it wants one."""

    traceparent: str = ""
    """W3C's: the span of this program that its appends and reads are part of, where they are
    traced.
    """

    codec: Codec = Codec.NONE
    """How batches are compressed on their way to the log and in it."""

    timeout_ms: int = 30_000
    """How long a call is tried before DeadlineExceeded, where the call doesn't say."""

    batch_bytes: int = 256 * KIB
    """A batch of appends is closed at this size, or sooner when there is room to send it."""

    batches_in_flight_max: int = 8
    """Unacknowledged batches of one log, or of one shard; both remember 16 of each producer."""

    pending_bytes_max: int = 16 * MIB
    """Appends held that aren't acknowledged yet; past it an append waits or is refused."""

    read_bytes: int = MIB
    """What one page of a read asks for; two are on their way while a read goes on."""

    subscription_bytes: int = MIB
    """What a subscription holds that the application hasn't taken yet."""

    window_bytes: int = 4 * MIB
    """Belfast: what a subscription holds of each shard, not taken by the application or not
    confirmed yet.
    """

    backoff_ms: int = 10
    """The pause before the second try; it doubles with each further one."""

    backoff_ms_max: int = 1_000
    """The longest pause between two tries."""

    silence_ms: int = 2_000
    """A server that owes answers and is silent so long is asked for a sign of life; after twice
    that the connection is given up."""

    route_ms: int = 30_000
    """Which broker serves a log, and who the brokers are, is asked again after so long of use."""

    hedge_ms: int = 300
    """While no broker is there, one more is dialed each time that this has passed."""

    directory_ms: int = 500
    """Belfast: how often another node is asked where the shards are, while anything is to do."""

    view_ms: int = 50
    """Erwin: while a member of a log's view is away, appends wait for the next view, and one node
    after the other is asked for it with pauses of at most this length.
    """

    idle_ms: int = 60_000
    """Belfast: a connection to a node on which nothing was asked or answered for so long is closed.
    It is opened again when something is to be asked there.
    """

    guard: tuple[str, int] | None = None
    """A scope, and the epoch of this program's turn in it: of several that are elected for the
    same, one whose turn is over changes nothing more. `Service.guard` sets it later.
    """
