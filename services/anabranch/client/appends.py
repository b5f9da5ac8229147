"""Whether a log's appends are direct or lazy, as an asyncio program changes it."""
# ruff: noqa: ASYNC109  # a timeout here travels with the request: its outcome is told, not cut off

from abc import ABC, abstractmethod
from typing import Any, Literal, cast

from anabranch.client.bolt.log import Log
from anabranch.client.catalogue import Appends, Catalogue, engine_settings, front_settings
from anabranch.client.logs import NamedLog
from anabranch.core.bolt.protocol.commands import Description


class AppendsVerbs(ABC):
    """Of a service."""

    _catalogue: Catalogue

    @abstractmethod
    async def opened(self, found: Description, timeout: float | None) -> Any:
        """The log that was found, of its engine's own type."""

    async def set_appends(
        self,
        log: "str | NamedLog",
        append: Appends,
        *,
        sequencers: int | None = None,
        durability: Literal["", "fsync", "memory"] = "",
        timeout: float | None = None,
    ) -> Log:
        """Make the appends of a Bolt log that exists, or of a fork of it, `lazy`, as `create` with
        `append="lazy"` does for a new one; or lazy ones `direct`. The log as it is from now on.

        Programs that append have to open the log anew: until then their appends are refused as
        LazyAppendsOnly unless they are in the log already, or as OutcomeUnknown by a front that
        ends. A `request_id` counts only on its side of the change. A front ends when all that it
        has acknowledged is in the log, which this waits for; a receipt whose position nobody has
        asked for by then gets none. Promotable forks have direct appends only, and a log that had a
        lazy front can't have another.
        """
        given = engine_settings(
            shards=1,
            replicas=None,
            sequencers=sequencers,
            addresses=(),
            cluster="",
            durability=durability,
        )
        name = log if isinstance(log, str) else log.name
        front = front_settings(name, "bolt", append, given)
        which = log if isinstance(log, str) else log.id
        found = await self._catalogue.set_appends(which, front, timeout)
        return cast("Log", await self.opened(found, timeout))
