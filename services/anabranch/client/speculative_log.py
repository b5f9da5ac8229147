"""A Belfast log of a service, as an asyncio program holds it."""
# ruff: noqa: ASYNC109  # a timeout here travels with the request: its outcome is told, not cut off

from typing import Never

from msgspec.structs import replace

from anabranch.client.belfast.appends import Pledge
from anabranch.client.belfast.link import Link
from anabranch.client.belfast.log import ShardedLog
from anabranch.client.catalogue import Catalogue
from anabranch.client.deployments import Deployments
from anabranch.client.session.endpoint import Endpoint
from anabranch.client.session.records import Appended
from anabranch.client.session.settings import Settings
from anabranch.core.bolt.protocol.commands import Description, EngineSettings
from anabranch.core.quota import Quota
from anabranch.core.types import LogId


class SpeculativeLog(ShardedLog[Appended[Never]]):
    """A log over several shards, which is read ahead of its order.

    Its appends have their positions at once: there are no receipts.
    """

    def __init__(self, link: Link, description: Description, catalogue: Catalogue) -> None:
        super().__init__(link)
        self.description = description
        """As the service described it when this handle was made, which doesn't know where the log
        begins and ends: `describe` asks.
        """
        self._catalogue = catalogue

    def __repr__(self) -> str:
        return f"<log {self.name} at {self.link.endpoint}>"

    @property
    def id(self) -> LogId:
        return self.description.id

    @property
    def name(self) -> str:
        return self.description.name

    def placed(self, pledge: Pledge, index: int) -> Appended[Never]:
        return Appended(pledge.position(index), None)

    async def describe(self, *, timeout: float | None = None) -> Description:
        """What the service knows of this log, and its sequencers: where it begins and ends, and how
        many records its shards hold. `status` is all that these know.
        """
        found = await self._catalogue.look_up(self.id, timeout)
        status = await self.status(timeout=timeout)
        end = max(status.confirmed, self.link.session.appender.acknowledged)
        return replace(
            found,
            start=min(status.trimmed, end),
            tail=end,
            settled=end,
            own_records=sum(shard.records for shard in status.shards),
        )

    async def set_quota(self, quota: Quota, *, timeout: float | None = None) -> None:
        """Let no more be appended in a second, through all shards together; it replaces the one
        before, whole.

        An append over it is refused as QuotaExceeded, which this library waits out for as long as
        it may. `Quota()` takes the log's away. Reads of a Belfast log can't be limited.
        """
        await self._catalogue.set_quota(self.description, quota, timeout)


class SpeculativeLogs:
    """The Belfast logs of one service, with one connection for each deployment."""

    def __init__(self, endpoint: Endpoint, settings: Settings, catalogue: Catalogue) -> None:
        def dialled(of: EngineSettings) -> Link:
            return Link(endpoint, settings, of.cluster, of.addresses)

        self._catalogue, self._deployments = catalogue, Deployments(catalogue, dialled)

    async def opened(self, description: Description, timeout_s: float) -> SpeculativeLog:
        """The log as the service has described it; waits until its processes are known."""
        found, settings, link = await self._deployments.reach(description, timeout_s)
        link.session.whereabouts.expected = settings.shards
        return SpeculativeLog(link, found, self._catalogue)

    @property
    def links(self) -> list[Link]:
        return self._deployments.links
