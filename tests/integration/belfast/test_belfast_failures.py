"""A shard that is lost as a whole, under load: one failure is told, once, and nothing that was
acknowledged is lost. When it is back it is a part of the log again.
"""

import asyncio
from pathlib import Path

from tests.integration.belfast.deployment import deployed, recovered, until
from tests.integration.belfast.load import Load, under

from anabranch.apps.processes.local_log import LogShape

KEPT, LOST = "shard-0", "shard-1"
RULES = {"silent_intervals": 25, "fail_intervals": 500}
"""T_ord is 20 ms: only who is away for 10 s has failed."""


def test_a_shard_that_is_lost_as_a_whole_fails_once_and_comes_back(tmp_path: Path) -> None:
    shape = LogShape(sequencers=1, shards=2, copies=2)

    async def scenario() -> None:
        async with Load(local) as load:
            for node in local.shards[LOST]:
                node.kill()
            await until(load.log, "it has failed", lambda status: status.view > 0)
            await load.go_on(KEPT)
            for node in local.shards[LOST]:
                await asyncio.to_thread(node.launch)
            await load.go_on()
            status = await recovered(load.log, local)
            assert (status.view, status.views_changed) == (1, 1)
            await load.finish()
            for watcher in load.watchers:
                assert watcher.fails <= 1, watcher.watching.name
                assert watcher.fails == 0 or watcher.watching.name != "confirmed"

    with deployed(tmp_path / "log", shape, RULES) as local:
        under(scenario())
