"""Erwin logs as processes that are killed, stopped and started again, under load (LazyLog, 4.5)."""

import asyncio
from pathlib import Path

import pytest
from tests.integration.erwin.deployment import (
    back,
    backup,
    connected,
    controller,
    deployed,
    follower,
    gone,
    leader,
    primary,
    whole,
)
from tests.integration.erwin.load import Load

from anabranch.apps.processes.local_log import LocalLog, Promise
from anabranch.apps.processes.servers import EtcdServer

BOTH_MODES = pytest.mark.parametrize("mode", ["m", "st"])
EACH_PROMISE = pytest.mark.parametrize(
    "promise",
    [
        pytest.param(Promise("m", "fsync"), id="m-fsync"),
        pytest.param(Promise("m", "memory"), id="m-memory", marks=pytest.mark.nightly),
        pytest.param(Promise("st", "fsync"), id="st-fsync", marks=pytest.mark.nightly),
        pytest.param(Promise("st", "memory"), id="st-memory"),
    ],
)


@EACH_PROMISE
def test_a_log_survives_the_death_of_each_of_its_processes(
    tmp_path: Path, etcd: EtcdServer, promise: Promise
) -> None:
    async def story(local: LocalLog) -> None:
        load = Load(local)
        async with connected(local) as log:
            await load.start()
            await load.go_on()
            for find in (leader, primary):
                victim = await find(log, local)
                victim.kill()
                if find is leader:
                    await load.reads_go_on()
                await gone(log, victim)
                await load.go_on()
                await back(log, local, victim)
            await load.finish(log)

    with deployed(tmp_path / "log", promise, etcd=(etcd.address,)) as local:
        asyncio.run(story(local))


@pytest.mark.nightly
@EACH_PROMISE
@pytest.mark.parametrize("paused", [False, True], ids=["killed", "paused"])
def test_a_log_survives_what_happens_to_any_of_its_processes(
    tmp_path: Path, etcd: EtcdServer, promise: Promise, *, paused: bool
) -> None:
    async def story(local: LocalLog) -> None:
        load = Load(local)
        async with connected(local) as log:
            await load.start()
            for find in (leader, follower, controller, primary, backup) * 3:
                victim = await find(log, local)
                if paused:
                    victim.pause()
                else:
                    victim.kill()
                if find in (leader, follower):
                    await load.reads_go_on()
                await gone(log, victim)
                await load.go_on()
                if paused:
                    victim.resume()
                    await whole(log, local)
                else:
                    await back(log, local, victim)
                await load.go_on()
            await load.finish(log)

    with deployed(tmp_path / "log", promise, etcd=(etcd.address,)) as local:
        asyncio.run(story(local))


@BOTH_MODES
def test_a_log_on_disks_survives_the_death_of_all_of_its_processes(
    tmp_path: Path, mode: str
) -> None:
    async def story(local: LocalLog) -> None:
        load = Load(local)
        async with connected(local) as log:
            await load.start()
            await load.go_on()
            for node in local.processes:
                node.kill()
            for node in local.processes:
                await asyncio.to_thread(node.launch)
            await load.go_on()
            await whole(log, local)
            await load.finish(log)

    with deployed(tmp_path / "log", Promise(mode, "fsync")) as local:
        asyncio.run(story(local))


@BOTH_MODES
def test_processes_that_are_told_to_end_are_replaced_before_they_do(
    tmp_path: Path, etcd: EtcdServer, mode: str
) -> None:
    """One after the other, as a rollout does it. A process that drains isn't silent, and doesn't
    end by itself before the log goes on without it.
    """

    async def story(local: LocalLog) -> None:
        load = Load(local)
        async with connected(local) as log:
            await load.start()
            for node in (local.sequencers[0], local.replicas[0]):
                await load.go_on()
                node.ask_to_end()
                await gone(log, node)
                await asyncio.to_thread(node.wait_ended)
                assert "not everything in hand" not in node.output.read_text()
                await back(log, local, node)
                assert await asyncio.to_thread(lambda node=node: node.ready)
            await load.finish(log)

    promise, patient = Promise(mode, "memory"), {"ANABRANCH_HANDOVER_MS": "20000"}
    with deployed(tmp_path / "log", promise, etcd=(etcd.address,), settings=patient) as local:
        asyncio.run(story(local))
