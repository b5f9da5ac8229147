"""The applications of examples/erwin check their output on a log of which a sequencing replica dies
and is replaced while they run (LazyLog, 4.5 and 6.11).
"""

import asyncio
from collections.abc import AsyncGenerator, Iterator

import pytest
from examples.erwin.__main__ import APPLICATIONS
from examples.erwin.shared_log import Entry, ErwinSharedLog
from tests.integration.erwin.deployment import (
    Log,
    back,
    connected,
    deployed,
    gone,
    leader,
    whole,
)

from anabranch.apps.processes.local_log import LocalLog, Node, Promise
from anabranch.apps.processes.servers import EtcdServer
from anabranch.core.types import Position

REQUESTS = 60
DIES_AT, BACK_AT = 20, 40
"""Which append finds the leader dead, and which one waits until it has been replaced."""


class ShakenLog:
    """An Erwin log of which one append finds the leader dead, and a later one finds all members
    there again. So both view changes are in the middle of whatever runs on the log.
    """

    def __init__(self, log: Log, local: LocalLog, *, careless: bool) -> None:
        self.appends = 0
        self._log, self._local = log, local
        self._shared = ErwinSharedLog(log)
        self._careless = careless
        self._died: asyncio.Future[Node] = asyncio.get_running_loop().create_future()

    async def append(self, value: bytes) -> None:
        self.appends += 1
        number = self.appends
        if number == DIES_AT:
            victim = await leader(self._log, self._local)
            victim.kill()
            self._died.set_result(victim)
            await self._shared.append(value)
            if self._careless:
                # A client that takes the slow append for a lost one, and gives it another id.
                await self._shared.append(value)
            return
        if number == BACK_AT:
            victim = await self._died
            await gone(self._log, victim)
            await back(self._log, self._local, victim)
        await self._shared.append(value)

    async def read(self, start: Position) -> list[Entry]:
        return await self._shared.read(start)

    def follow(self, start: Position) -> AsyncGenerator[list[Entry], None]:
        return self._shared.follow(start)


@pytest.fixture(
    scope="module", params=["m", pytest.param("st", marks=pytest.mark.nightly)], name="local"
)
def processes(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, etcd: EtcdServer
) -> Iterator[LocalLog]:
    """Three sequencers with their controllers, and two shards of two replicas."""
    folder, promise = tmp_path_factory.mktemp("log"), Promise(request.param, "fsync")
    with deployed(folder / "log", promise, etcd=(etcd.address,)) as local:
        yield local


@pytest.mark.parametrize("application", sorted(APPLICATIONS))
def test_an_application_finds_its_output_right_across_view_changes(
    local: LocalLog, application: str
) -> None:
    assert _played(local, application) == []


@pytest.mark.nightly
@pytest.mark.parametrize("application", sorted(APPLICATIONS))
def test_an_application_notices_an_append_that_a_view_change_has_doubled(
    local: LocalLog, application: str
) -> None:
    assert _played(local, application, careless=True)


def _played(local: LocalLog, application: str, *, careless: bool = False) -> list[str]:
    """What the application found wrong, after two view changes in the middle of its work."""

    async def story() -> list[str]:
        async with connected(local) as log:
            await whole(log, local)
            before = (await log.status()).view
            shaken = ShakenLog(log, local, careless=careless)
            start, seed = await log.tail(), 1
            wrong = await APPLICATIONS[application](shaken, start, REQUESTS, seed)
            assert shaken.appends > BACK_AT
            assert (await log.status()).view >= before + 2
            return wrong

    return asyncio.run(story())
