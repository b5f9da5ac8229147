"""What a Belfast log says of itself, for tests that show or judge it."""

from typing import Any

from msgspec.structs import replace

from anabranch.core.belfast.ledger.ledger import Standing
from anabranch.core.belfast.ledger.windows import Mode
from anabranch.core.belfast.protocol.messages import ShardStatus, Status

_SHARD = ShardStatus(
    name="a",
    standing=Standing.SEATED,
    epoch=1,
    primary="a:1",
    replicas=("a:1",),
    stand_in="",
    quota=10,
    next_quota=10,
    window=1,
    rounds=1,
    lag=0,
    records=0,
    noops=0,
    queued=0,
    signals=0,
    resting=False,
    silent=(),
)
_LOG = Status(
    term=1,
    leader="s:1",
    members=("s:1",),
    reachable=("s:1",),
    index=1,
    view=0,
    mode=Mode.STEADY,
    window=0,
    cut=1,
    cuts=100,
    published=1,
    confirmed=0,
    horizon=0,
    trimmed=0,
    t_ord_us=10_000,
    shards=(),
    views_changed=0,
    cuts_made=1,
)


def shard_status(**differs: Any) -> ShardStatus:
    """Of a shard with one replica that has a seat and no records."""
    return replace(_SHARD, **differs)


def log_status(*shards: ShardStatus, **differs: Any) -> Status:
    """Of a new log with one sequencer and these shards."""
    return replace(_LOG, shards=shards, **differs)
