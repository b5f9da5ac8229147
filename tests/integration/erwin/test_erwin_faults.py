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

from anabranch.apps.processes.local_log import LocalLog, LogShape, Promise
from anabranch.apps.processes.servers import EtcdServer

SMALL = LogShape(sequencers=2, shards=1, copies=2)
"""So few processes start within seconds; the whole shape is for the night."""
WHOLE = pytest.param(None, id="whole", marks=pytest.mark.nightly)
EACH_SHAPE = pytest.mark.parametrize("shape", [pytest.param(SMALL, id="small"), WHOLE])
BOTH_MODES = pytest.mark.parametrize("mode", ["m", "st"])
PROMISES = [Promise(mode, durability) for mode in ("m", "st") for durability in ("fsync", "memory")]


def _called(promise: Promise) -> str:
    return f"{promise.mode}-{promise.durability}"


@pytest.mark.parametrize("promise", [Promise("m", "fsync"), Promise("st", "memory")], ids=_called)
def test_a_log_survives_the_death_of_its_leader_and_of_a_primary(
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

    with deployed(tmp_path / "log", promise, SMALL, etcd=(etcd.address,)) as local:
        asyncio.run(story(local))


@pytest.mark.nightly
@pytest.mark.parametrize("promise", PROMISES, ids=_called)
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


@EACH_SHAPE
@BOTH_MODES
def test_a_log_on_disks_survives_the_death_of_all_of_its_processes(
    tmp_path: Path, mode: str, shape: LogShape | None
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

    with deployed(tmp_path / "log", Promise(mode, "fsync"), shape) as local:
        asyncio.run(story(local))


@EACH_SHAPE
@BOTH_MODES
def test_processes_that_are_told_to_end_are_replaced_before_they_do(
    tmp_path: Path, etcd: EtcdServer, mode: str, shape: LogShape | None
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
    etcds = (etcd.address,)
    with deployed(tmp_path / "log", promise, shape, etcd=etcds, settings=patient) as local:
        asyncio.run(story(local))
