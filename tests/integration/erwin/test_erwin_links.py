"""Links of an Erwin log that are cut: each process is in a network namespace of its own.

Nobody dies and no connection is closed: whoever is behind a cut link goes on, and is heard by none.
"""

import asyncio
import os
import shutil
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest
from tests.integration.erwin.deployment import (
    Log,
    connected,
    deployed,
    follower,
    gone,
    leader,
    primary,
    whole,
)
from tests.integration.erwin.load import Load
from tests.servers import needs

from anabranch.apps.processes.binaries import ETCD
from anabranch.apps.processes.local_log import LocalLog, Node, Promise
from anabranch.apps.processes.ports import free_ports
from anabranch.apps.processes.servers import EtcdGroup

Find = Callable[[Log, LocalLog], Awaitable[Node]]
"""Who is to be cut off."""
NIGHTLY = pytest.mark.nightly
NOWHERE = "network namespaces are made by root with iproute2's ip, and one is missing"


@pytest.fixture
def etcd_port(tmp_path: Path) -> Iterator[int]:
    """Of an etcd that listens on all of this machine's addresses."""
    if os.geteuid() != 0 or shutil.which("ip") is None:
        pytest.skip(NOWHERE)
    needs(ETCD)
    ports = free_ports(3)
    url = f"http://0.0.0.0:{ports[0]}"
    group = EtcdGroup(tmp_path / "etcd", 1, ports, listen_client_urls=url, unsafe_no_fsync="true")
    try:
        group.start()
        yield ports[0]
    finally:
        group.kill()


@pytest.mark.parametrize(
    ("promise", "victims"),
    [
        pytest.param(Promise("m", "fsync"), (leader,), id="m-fsync-leader"),
        pytest.param(
            Promise("m", "fsync"), (follower, primary), id="m-fsync-others", marks=NIGHTLY
        ),
        pytest.param(
            Promise("st", "memory"), (leader, follower, primary), id="st-memory", marks=NIGHTLY
        ),
    ],
)
def test_links_that_are_cut_lose_nothing_that_was_acknowledged(
    tmp_path: Path, etcd_port: int, promise: Promise, victims: tuple[Find, ...]
) -> None:
    """The leader's, whose controller may lead as well, a follower's and a primary's."""

    async def story(local: LocalLog) -> None:
        assert local.machines is not None
        load = Load(local)
        async with connected(local) as log:
            await load.start()
            await load.go_on()
            for find in victims:
                victim = await find(log, local)
                local.machines.cut(victim.pair.host)
                if find is not primary:
                    await load.reads_go_on()
                await gone(log, victim)
                await load.go_on()
                local.machines.mend(victim.pair.host)
                await whole(log, local)
            await load.finish(log)

    with deployed(tmp_path / "log", promise, etcd_port=etcd_port) as local:
        asyncio.run(story(local))
