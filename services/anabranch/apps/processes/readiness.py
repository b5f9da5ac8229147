"""When a local Belfast log is ready: every shard can have an append ordered."""

from collections.abc import Callable, Collection
from contextlib import closing
from threading import Event
from time import monotonic

from anabranch.client.belfast import sync
from anabranch.core.belfast.ledger.ledger import Standing
from anabranch.core.belfast.protocol.messages import ShardStatus, Status
from anabranch.core.errors import Unavailable

_LOOK_S = 0.05
_WINDOWS = 3
"""A shard that joins waits for the windows that are published already, two at most."""


def wait_seated(
    url: str, shards: Collection[str], timeout_s: float, check: Callable[[], None]
) -> None:
    """Return when each of these shards has a seat in the window that is being cut.

    A shard without one takes appends as well, but confirms none of them before its first window:
    with long windows a client's time is over by then. `check` raises if a process has ended.
    """
    end, pause = monotonic() + timeout_s, Event()
    with closing(sync.connect(url, timeout=timeout_s)) as log:
        while True:
            check()
            status = log.status(timeout=timeout_s)
            waiting = unseated(status, shards)
            if not waiting:
                return
            window_s = status.cuts * status.t_ord_us / 1e6
            if monotonic() > end + _WINDOWS * window_s:
                names = ", ".join(waiting)
                raise Unavailable(f"the log at {url}", f"no seat in its windows for {names}")
            pause.wait(_LOOK_S)


def unseated(status: Status, shards: Collection[str]) -> list[str]:
    """Which of these shards can't have an append ordered now; shards that leave aren't expected
    to.
    """
    known = {shard.name: shard for shard in status.shards}
    return [name for name in shards if name not in known or not _may_order(known[name])]


def _may_order(shard: ShardStatus) -> bool:
    if shard.standing in {Standing.LEAVING, Standing.LEFT}:
        return True
    # A straggler rests without a quota until it has a record.
    placed = shard.quota > 0 or shard.resting
    return shard.standing is Standing.SEATED and placed and not shard.silent
