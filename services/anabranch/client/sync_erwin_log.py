"""An Erwin log of a service, as a program without an event loop holds it."""

from anabranch.client import erwin_log
from anabranch.client.driver.handover import Handover
from anabranch.client.erwin.sync_log import SequencedLog
from anabranch.core.bolt.protocol.commands import Description
from anabranch.core.quota import Quota
from anabranch.core.types import LogId


class ErwinLog(SequencedLog):
    """A log that acknowledges appends in one round trip, and orders them before they are read.

    Its appends have receipts in place of positions: `receipt.position()` waits for the order.
    """

    def __init__(self, loop: Handover, wrapped: erwin_log.ErwinLog) -> None:
        super().__init__(loop, wrapped)
        self._erwin = wrapped

    @property
    def id(self) -> LogId:
        return self._erwin.id

    @property
    def description(self) -> Description:
        """As the service described it when this handle was made, which doesn't know where the log
        begins and ends: `describe` asks.
        """
        return self._erwin.description

    def describe(self, *, timeout: float | None = None) -> Description:
        """What the service knows of this log, and its leader: where it begins, where its durable
        and its stable records end, and how many its shards hold. `status` is all that it knows.
        """
        return self._loop.run(self._erwin.describe(timeout=timeout))

    def add_shards(self, count: int = 1, *, timeout: float | None = None) -> None:
        """Have so many more. They take records as soon as their processes run, without a pause for
        anybody; `survey` shows when.

        Only where `anabranch up --processes` runs the log's nodes. Refused as BadRequest where they
        are machines of one process; on Kubernetes it is for the log's resource.
        """
        self._loop.run(self._erwin.add_shards(count, timeout=timeout))

    def set_quota(self, quota: Quota, *, timeout: float | None = None) -> None:
        """Let no more be appended in a second, through all sequencers together; it replaces the one
        before, whole.

        An append over it is refused as QuotaExceeded, which this library waits out for as long as
        it may. `Quota()` takes the log's away. Reads of an Erwin log can't be limited.
        """
        self._loop.run(self._erwin.set_quota(quota, timeout=timeout))
