"""A Belfast log of a service, as an asyncio program holds it."""
# ruff: noqa: ASYNC109  # a timeout here travels with the request: its outcome is told, not cut off

import asyncio
from typing import Never

from msgspec.structs import replace

from anabranch.client.belfast.appends import Pledge
from anabranch.client.belfast.link import Link
from anabranch.client.belfast.log import ShardedLog
from anabranch.client.catalogue import Catalogue
from anabranch.client.session.endpoint import Endpoint
from anabranch.client.session.records import Appended
from anabranch.client.session.settings import Settings
from anabranch.core.bolt.protocol.commands import Description
from anabranch.core.errors import Unavailable
from anabranch.core.quota import Quota
from anabranch.core.types import LogId

_LOOK_S = 0.1
"""How often the service is asked whether a new log's processes have started."""


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
        self._endpoint, self._settings, self._catalogue = endpoint, settings, catalogue
        self._links: dict[tuple[str, tuple[str, ...]], Link] = {}

    async def opened(self, description: Description, timeout_s: float) -> SpeculativeLog:
        """The log as the service has described it; waits until its processes are known."""
        name, found = description.name, description
        try:
            async with asyncio.timeout(timeout_s):
                while found.settings is None or not found.settings.addresses:
                    await asyncio.sleep(_LOOK_S)
                    found = await self._catalogue.look_up(description.id)
        except TimeoutError:
            reason = "its sequencers are being started, and none is known yet"
            raise Unavailable(f"log {name}", reason) from None
        link = self._link(found.settings.cluster, found.settings.addresses)
        link.session.whereabouts.expected = found.settings.shards
        return SpeculativeLog(link, found, self._catalogue)

    @property
    def links(self) -> list[Link]:
        return list(self._links.values())

    def _link(self, cluster: str, addresses: tuple[str, ...]) -> Link:
        link = self._links.get((cluster, addresses))
        if link is None:
            link = Link(self._endpoint, self._settings, cluster, addresses)
            self._links[cluster, addresses] = link
            link.start()
        return link
