"""A Belfast log of a service, as a program without an event loop holds it."""

from typing import Never

from anabranch.client import speculative_log
from anabranch.client.belfast.sync_log import ShardedLog
from anabranch.client.driver.handover import Handover
from anabranch.client.session.records import Appended
from anabranch.core.bolt.protocol.commands import Description
from anabranch.core.quota import Quota
from anabranch.core.types import LogId


class SpeculativeLog(ShardedLog[Appended[Never]]):
    """A log over several shards, which is read ahead of its order.

    Its appends have their positions at once: there are no receipts.
    """

    def __init__(self, loop: Handover, wrapped: speculative_log.SpeculativeLog) -> None:
        super().__init__(loop, wrapped)
        self._speculative = wrapped

    @property
    def id(self) -> LogId:
        return self._speculative.id

    @property
    def description(self) -> Description:
        """As the service described it when this handle was made, which doesn't know where the log
        begins and ends: `describe` asks.
        """
        return self._speculative.description

    def describe(self, *, timeout: float | None = None) -> Description:
        """What the service knows of this log, and its sequencers: where it begins and ends, and how
        many records its shards hold. `status` is all that these know.
        """
        return self._loop.run(self._speculative.describe(timeout=timeout))

    def set_quota(self, quota: Quota, *, timeout: float | None = None) -> None:
        """Let no more be appended in a second, through all shards together; it replaces the one
        before, whole.

        An append over it is refused as QuotaExceeded, which this library waits out for as long as
        it may. `Quota()` takes the log's away. Reads of a Belfast log can't be limited.
        """
        self._loop.run(self._speculative.set_quota(quota, timeout=timeout))
