"""Sequencers and replicas that die or stop, one at a time, and all at once: under load nothing that
was acknowledged is lost or there twice, and nobody is told of a failure.
"""

import asyncio
from collections.abc import Iterator

import pytest
from tests.integration.belfast.deployment import deployed, recovered
from tests.integration.belfast.load import Load, under

from anabranch.apps.processes.local_log import LocalLog, LogShape, Node
from anabranch.core.history.calls import Verdict

TWO, THREE = "shard-0", "shard-1"
"""By how many copies they have."""


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalLog]:
    folder = tmp_path_factory.mktemp("replicas") / "log"
    # A shard is never thought to have failed as a whole, however slow this machine is.
    rules = {"silent_intervals": 50, "fail_intervals": 1_000_000}
    shape = LogShape(sequencers=3, shards=2, copies=3)
    with deployed(folder, shape, rules, copies=(2, 3)) as local:
        yield local


async def killed(load: Load, node: Node) -> None:
    node.kill()
    await load.go_on()
    await asyncio.to_thread(node.launch)
    await load.go_on()


async def paused(load: Load, node: Node) -> None:
    node.pause()
    await load.go_on()
    node.resume()
    await load.go_on()


async def concluded(load: Load) -> None:
    """All are back, nobody has heard of a failure, and nothing became of any append but its
    acknowledgement.
    """
    status = await recovered(load.log, load.local)
    assert status.view == 0
    await load.finish()
    assert [watcher.fails for watcher in load.watchers] == [0] * len(load.watchers)
    assert load.verdicts(Verdict.OK) == len(load.account.placings)


def test_appends_and_subscriptions_outlive_sequencers(local: LocalLog) -> None:
    async def scenario() -> None:
        async with Load(local) as load:
            await killed(load, await load.follower())
            await paused(load, await load.follower())
            await killed(load, await load.leader())
            await paused(load, await load.leader())
            await concluded(load)

    under(scenario())


@pytest.mark.parametrize("shard", [TWO, THREE])
def test_appends_and_subscriptions_outlive_replicas(local: LocalLog, shard: str) -> None:
    async def scenario() -> None:
        async with Load(local) as load:
            await recovered(load.log, local)
            await killed(load, await load.backup(shard))
            await recovered(load.log, local)
            await paused(load, await load.backup(shard))
            await recovered(load.log, local)
            await killed(load, await load.primary(shard))
            await recovered(load.log, local)
            await paused(load, await load.primary(shard))
            await concluded(load)

    under(scenario())


def test_a_loss_of_power_loses_nothing(local: LocalLog) -> None:
    async def scenario() -> None:
        async with Load(local) as load:
            for _ in range(2):
                local.kill()
                await asyncio.to_thread(local.start, print)
                await load.go_on()
            await concluded(load)

    under(scenario())
