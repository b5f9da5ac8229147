"""The nodes that serve a service's logs of other engines than Bolt: one connection for each log."""

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
    """Of one engine."""

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
                while found.settings is None or not found.settings.addresses:
                    await asyncio.sleep(_LOOK_S)
                    found = await self._catalogue.look_up(description.id)
        except TimeoutError:
            reason = "its sequencers are being started, and none is known yet"
            raise Unavailable(f"log {name}", reason) from None
        return found, found.settings, self._link(found.settings)

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
