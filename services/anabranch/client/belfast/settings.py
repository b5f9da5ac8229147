"""What a client of Belfast may be told: who it is, how long to try, how much to hold."""

import msgspec

from anabranch.core.limits import KIB, MIB
from anabranch.core.records.codecs import Codec


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """Every interval and bound of a client, named, with its unit last."""

    client: str = "anabranch-python"
    """What this program calls itself."""

    token: str | None = None
    """The deployment's token, if it wants one."""

    codec: Codec = Codec.NONE
    """How batches are compressed on their way to the log and in it."""

    timeout_ms: int = 30_000
    """How long a call is tried, where the call doesn't say."""

    batch_bytes: int = 256 * KIB
    """A batch of appends is closed at this size, or sooner when there is room to send it."""

    batches_in_flight_max: int = 8
    """Unacknowledged batches at one shard, which remembers 16 of each producer."""

    pending_bytes_max: int = 16 * MIB
    """Appends held that aren't acknowledged yet; past it an append waits."""

    window_bytes: int = 4 * MIB
    """What a subscription holds of each shard: not taken by the application, or not confirmed."""

    backoff_ms: int = 10
    """The pause before the second try; it doubles with each further one."""

    backoff_ms_max: int = 1_000
    """The longest pause between two tries."""

    silence_ms: int = 2_000
    """A node that owes answers and is silent so long is asked for a sign of life; after twice that
    the connection is given up.
    """

    directory_ms: int = 500
    """While there is anything to do, another node is asked so often where the shards are."""
