"""The nodes that serve a service's logs of other engines than Bolt, or the lazy fronts of Bolt's
own: one connection for each log.
"""

import asyncio
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from anabranch.client.catalogue import Catalogue
from anabranch.client.driver.link import Link
from anabranch.core.bolt.protocol.commands import Description, EngineSettings
from anabranch.core.errors import Unavailable

_LOOK_S = 0.1
"""How often the service is asked whether a new log's processes have started."""

L = TypeVar("L", bound=Link[Any, Any])


class Deployments(Generic[L]):
    """Of one engine, or all fronts."""

    def __init__(self, catalogue: Catalogue, dialled: Callable[[EngineSettings], L]) -> None:
        """`dialled`: a link to a log with these settings, not started yet."""
        self._catalogue, self._dialled = catalogue, dialled
        self._links: dict[tuple[str, tuple[str, ...]], L] = {}

    async def reach(
        self, description: Description, timeout_s: float
    ) -> tuple[Description, EngineSettings, L]:
        """The log as the service describes it once its processes are known, and their link."""
        name, found = description.name, description
        try:
            async with asyncio.timeout(timeout_s):
                while (settings := found.settings or found.front) is None or not settings.addresses:
                    await asyncio.sleep(_LOOK_S)
                    found = await self._catalogue.look_up(description.id)
        except TimeoutError:
            raise Unavailable(f"log {name}", _starting(found)) from None
        return found, settings, self._link(settings)

    @property
    def links(self) -> list[L]:
        return list(self._links.values())

    def _link(self, settings: EngineSettings) -> L:
        key = settings.cluster, settings.addresses
        link = self._links.get(key)
        if link is None:
            link = self._links[key] = self._dialled(settings)
            link.start()
        return link


def _starting(log: Description) -> str:
    """Why the log's processes aren't known."""
    box = log.settings.black_box if log.settings is not None else ""
    if not box:
        return "its sequencers are being started, and none is known yet"
    return f"its shards haven't reached their black box {box} yet, or are being started"
