"""Links that are cut: each process is in a network namespace of its own, on a bridge between them.

Nobody dies and no connection is closed: whoever is behind a cut link goes on, and is heard by none.
"""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.integration.belfast.deployment import deployed, recovered, until
from tests.integration.belfast.load import Load, under

from anabranch.apps.processes.local_log import LocalLog, LogShape, Node
from anabranch.apps.processes.namespaces import Machines

KEPT, LOST = "shard-0", "shard-1"
RULES = {"silent_intervals": 25, "fail_intervals": 250}
"""T_ord is 20 ms: half a second, and five."""


@pytest.fixture
def local(tmp_path: Path) -> Iterator[LocalLog]:
    if os.geteuid() != 0 or shutil.which("ip") is None:
        pytest.skip("network namespaces are made by root with iproute2's ip, and one is missing")
    shape = LogShape(sequencers=3, shards=2, copies=2)
    with deployed(tmp_path / "log", shape, RULES, namespaces=True) as found:
        yield found


def cut(local: LocalLog, *nodes: Node) -> None:
    for node in nodes:
        machines(local).cut(node.pair.host)


def mend(local: LocalLog, *nodes: Node) -> None:
    for node in nodes:
        machines(local).mend(node.pair.host)


def machines(local: LocalLog) -> Machines:
    assert local.machines is not None
    return local.machines


def test_links_that_are_cut_lose_nothing_that_was_acknowledged(local: LocalLog) -> None:
    """A sequencer's, a primary's, and a whole shard's, under one load."""

    async def scenario() -> None:
        async with Load(local) as load:
            await load.go_on()
            sequencer, primary = local.sequencers[0], local.shards[KEPT][0]
            cut(local, sequencer)
            await load.go_on()
            mend(local, sequencer)
            await recovered(load.log, local)
            cut(local, primary)
            await load.go_on()
            mend(local, primary)
            await recovered(load.log, local)
            cut(local, *local.shards[LOST])
            await until(load.log, "it has failed", lambda status: status.view > 0)
            await load.go_on(KEPT)
            mend(local, *local.shards[LOST])
            await recovered(load.log, local)
            await load.go_on()
            await load.finish()

    under(scenario())


def test_what_was_made_is_gone_at_the_end(local: LocalLog) -> None:
    network = local.layout.network
    assert network is not None
    assert Path("/sys/class/net", network.name).exists()
    local.kill()
    assert not Path("/sys/class/net", network.name).exists()
    assert list(Path("/run/netns").glob(f"{network.name}-*")) == []
