"""Erwin logs whose shards are processes that keep their records in logs of other systems
(decisions 63 and 66).
"""

import asyncio
import signal
from http.client import HTTPConnection
from pathlib import Path

import pytest
from benchmarks.peers.kafka import server as kafka_server
from tests.integration.erwin.deployment import PATIENCE_S, connected, deployed
from tests.integration.erwin.load import Load
from tests.integration.server_process import Process, running

from anabranch.apps.processes.local_log import LocalLog, LogShape, Node, Promise, settle

needs_kafka = pytest.mark.skipif(
    kafka_server.obstacle() is not None, reason=f"no Kafka: {kafka_server.obstacle()}"
)
SHAPE = LogShape(sequencers=2, shards=2, copies=1)


def obstacles(node: Node) -> str:
    connection = HTTPConnection(node.pair.host, node.pair.probes, timeout=5)
    try:
        connection.request("GET", "/readyz")
        return connection.getresponse().read().decode()
    except OSError:
        return ""
    finally:
        connection.close()


async def said(node: Node, words: str) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while words not in await asyncio.to_thread(obstacles, node):
            assert node.running
            await asyncio.sleep(0.05)


def test_a_log_survives_the_deaths_of_its_shards_and_of_the_bolt_logs_that_keep_its_records(
    tmp_path: Path,
) -> None:
    async def story(local: LocalLog, bolt: Process) -> None:
        load = Load(local)
        async with connected(local) as log:
            await load.start()
            await load.go_on()
            for node in local.replicas:
                node.kill()
            bolt.end(signal.SIGKILL)
            for node in local.replicas:
                await asyncio.to_thread(node.launch)
            await said(local.replicas[0], "failed")
            with running(tmp_path / "bolt", "--port", str(bolt.port)):
                await load.go_on()
                await load.finish(log)
                await others_are_refused(tmp_path, promise)

    with running(tmp_path / "bolt") as bolt:
        promise = Promise(black_box=f"anabranch://127.0.0.1:{bolt.port}/audit")
        with deployed(tmp_path / "log", promise, SHAPE) as local:
            asyncio.run(story(local, bolt))
        assert not list(tmp_path.glob("log/shard-*/data/journal/*"))


async def others_are_refused(folder: Path, promise: Promise) -> None:
    """The shard of another log doesn't take over what it finds, and leaves it as it is."""
    layout = settle(folder / "other", SHAPE, engine="erwin", promise=promise)
    other = LocalLog(folder / "other", layout)
    node = other.replicas[0]
    await asyncio.to_thread(node.launch)
    try:
        await said(node, "name another one, which is empty")
    finally:
        node.kill()


@needs_kafka
@pytest.mark.nightly
def test_nothing_acknowledged_is_lost_when_kafka_and_shards_are_killed(tmp_path: Path) -> None:
    async def story(local: LocalLog, kafka: kafka_server.Kafka) -> None:
        load = Load(local)
        async with connected(local) as log:
            await load.start()
            await load.go_on()
            kafka.kill()
            await load.reads_go_on()
            local.replicas[0].kill()
            await asyncio.to_thread(local.replicas[0].launch)
            await asyncio.to_thread(kafka.start)
            await load.go_on()
            local.replicas[1].kill()
            local.sequencers[1].kill()
            kafka.kill()
            await asyncio.to_thread(kafka.start)
            for node in (local.replicas[1], local.sequencers[1]):
                await asyncio.to_thread(node.launch)
            await load.go_on()
            await load.finish(log)

    with kafka_server.running(tmp_path / "kafka") as kafka:
        promise = Promise(black_box=f"kafka://{kafka.address}/audit")
        with deployed(tmp_path / "log", promise, SHAPE) as local:
            asyncio.run(story(local, kafka))
