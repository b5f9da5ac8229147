"""Logs whose processes aren't known yet."""

import asyncio
from typing import Any, cast

import pytest
from msgspec.structs import replace

from anabranch import aio, testing
from anabranch.client.catalogue import Catalogue
from anabranch.client.deployments import Deployments
from anabranch.core.bolt.protocol.commands import Description, EngineSettings
from anabranch.core.errors import Unavailable
from anabranch.core.types import LogId


class Silent:
    """A catalogue in which no log gets addresses."""

    def __init__(self, found: Description) -> None:
        self._found = found

    async def look_up(self, log: LogId) -> Description:
        assert log == self._found.id
        return self._found


@pytest.mark.parametrize(
    ("black_box", "said"),
    [("kafka://k:9092/audit", "black box kafka://k:9092/audit"), ("", "sequencers are being st")],
)
def test_a_log_that_waits_for_its_black_box_says_so(black_box: str, said: str) -> None:
    async def scene(url: str) -> None:
        async with aio.connect(url) as service:
            made = (await service.create("orders")).description
        settings = EngineSettings(mode="m", durability="fsync", black_box=black_box)
        waiting = replace(made, engine="erwin", settings=settings)
        logs: Deployments[Any] = Deployments(
            cast(Catalogue, Silent(waiting)), lambda settings: None
        )
        with pytest.raises(Unavailable, match=said):
            await logs.reach(waiting, timeout_s=0)

    with testing.server() as server:
        asyncio.run(scene(server.url))
