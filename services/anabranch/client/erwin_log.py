"""An Erwin log of a service, as an asyncio program holds it."""
# ruff: noqa: ASYNC109  # a timeout here travels with the request: its outcome is told, not cut off

from msgspec.structs import replace

from anabranch.client.catalogue import Catalogue
from anabranch.client.deployments import Deployments
from anabranch.client.erwin.link import Link
from anabranch.client.erwin.log import SequencedLog
from anabranch.client.session.endpoint import Endpoint
from anabranch.client.session.settings import Settings
from anabranch.core.bolt.protocol.commands import Description, EngineSettings
from anabranch.core.quota import Quota
from anabranch.core.types import LogId


class ErwinLog(SequencedLog):
    """A log that acknowledges appends in one round trip, and orders them before they are read.

    Its appends have receipts in place of positions: `receipt.position()` waits for the order.
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

    async def describe(self, *, timeout: float | None = None) -> Description:
        """What the service knows of this log, and its leader: where it begins, where its durable
        and its stable records end, and how many its shards hold. `status` is all that it knows.
        """
        found = await self._catalogue.look_up(self.id, timeout)
        status = await self.status(timeout=timeout)
        return replace(
            found,
            start=status.trimmed,
            tail=max(status.tail, status.stable),
            settled=status.stable,
            own_records=sum(shard.records for shard in status.shards),
        )

    async def set_quota(self, quota: Quota, *, timeout: float | None = None) -> None:
        """Let no more be appended in a second, through all sequencers together; it replaces the one
        before, whole.

        An append over it is refused as QuotaExceeded, which this library waits out for as long as
        it may. `Quota()` takes the log's away. Reads of an Erwin log can't be limited.
        """
        await self._catalogue.set_quota(self.description, quota, timeout)

    async def add_shards(self, count: int = 1, *, timeout: float | None = None) -> None:
        """Have so many more. They take records as soon as their processes run, without a pause for
        anybody; `survey` shows when.

        Only where `anabranch up --processes` runs the log's nodes. Refused as BadRequest where they
        are machines of one process; on Kubernetes it is for the log's resource.
        """
        await self._catalogue.add_shards(self.id, count, timeout)


class ErwinLogs:
    """The Erwin logs of one service, with one connection for each."""

    def __init__(self, endpoint: Endpoint, settings: Settings, catalogue: Catalogue) -> None:
        def dialled(of: EngineSettings) -> Link:
            return Link(endpoint, settings, of.cluster, of.addresses)

        self._catalogue, self._deployments = catalogue, Deployments(catalogue, dialled)

    async def opened(self, description: Description, timeout_s: float) -> ErwinLog:
        """The log as the service has described it; waits until its processes are known."""
        found, _, link = await self._deployments.reach(description, timeout_s)
        return ErwinLog(link, found, self._catalogue)

    @property
    def links(self) -> list[Link]:
        return self._deployments.links
