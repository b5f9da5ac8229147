"""Belfast logs of `anabranch up --processes`: created, placed, started again and deleted."""

import asyncio
import shutil
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from threading import Event
from time import monotonic

import pytest
from tests.servers import needs

import anabranch
from anabranch import Quota
from anabranch.apps.processes.binaries import ETCD, VERSITYGW
from anabranch.apps.processes.catalogue_logs import CatalogueLogs
from anabranch.apps.processes.cluster import LocalCluster
from anabranch.apps.processes.layout import Shape, settle
from anabranch.apps.processes.local_log import QUOTA_FILE
from anabranch.client.belfast import sync
from anabranch.client.bolt.link import Link
from anabranch.client.session.endpoint import endpoint
from anabranch.client.session.settings import Settings
from anabranch.core.bolt.protocol.commands import Description, EngineSettings
from anabranch.core.bolt.protocol.messages import CreateLog
from anabranch.core.errors import QuotaExceeded
from anabranch.shell.runtime.clock import Clock
from anabranch.shell.server.quota_file import read
from anabranch.shell.telemetry.log import Log, LogFormat

PATIENCE_S = 120.0
PATIENCE_MS = 60_000


async def create(url: str, settings: EngineSettings) -> Description:
    link = Link(endpoint(url), Settings())
    link.start()
    message = CreateLog("ticks", link.once(), engine="belfast", settings=settings)
    made = await link.ask(message, Description, "create", PATIENCE_MS)
    link.close()
    return made


def cluster_in(folder: Path, *, accept_loss: bool = False) -> LocalCluster:
    layout = settle(folder, Shape(metadata=1, brokers=1))
    log = Log(Clock().now, LogFormat.HUMAN, sys.stderr)
    others = CatalogueLogs(folder, layout.url, log, accept_loss=accept_loss)
    fast = {"unsafe_no_fsync": "true"}
    return LocalCluster(folder, layout, fast, with_gateway=False, others=others)


def tended(cluster: LocalCluster, until: Callable[[], bool]) -> None:
    end, pause = monotonic() + PATIENCE_S, Event()
    while not until():
        assert monotonic() < end
        cluster.tend()
        pause.wait(0.05)


def described(service: anabranch.Service) -> Description:
    (found,) = service.logs("ticks")
    return found


def placed(service: anabranch.Service) -> bool:
    settings = described(service).settings
    return settings is not None and bool(settings.addresses)


def address_of(settings: EngineSettings) -> str:
    return f"belfast://{','.join(settings.addresses)}/{settings.cluster}"


def folder_of(cluster: Path) -> Path:
    (found,) = (cluster / "belfast").iterdir()
    return found


def test_a_log_gets_processes_keeps_them_over_a_restart_and_loses_them_with_its_name(
    tmp_path: Path,
) -> None:
    needs(ETCD, VERSITYGW)
    cluster = cluster_in(tmp_path)
    cluster.start(lambda _: None)
    try:
        made = asyncio.run(create(cluster.layout.url, EngineSettings()))
        assert made.settings is not None
        assert (made.settings.addresses, made.settings.embedded) == ((), False)
        with anabranch.connect(cluster.layout.url, timeout=PATIENCE_S) as service:
            tended(cluster, lambda: placed(service))
            settings = described(service).settings
        assert settings is not None
        with closing(sync.connect(address_of(settings), timeout=PATIENCE_S)) as log:
            log.append(b"before", timeout=PATIENCE_S)
        assert [node.name for node in cluster.processes[-2:]] == [
            "ticks-sequencer-0",
            "ticks-shard-0-0",
        ]
        cluster.stop()
        cluster = cluster_in(tmp_path)
        cluster.start(lambda _: None)
        with closing(sync.connect(address_of(settings), timeout=PATIENCE_S)) as log:
            log.append(b"after", timeout=PATIENCE_S)
            assert log.status().confirmed >= 2
        with anabranch.connect(cluster.layout.url, timeout=PATIENCE_S) as service:
            nodes = cluster.processes[-2:]
            service.delete("ticks", timeout=PATIENCE_S)
            tended(cluster, lambda: not any(node.running for node in nodes))
        assert list((tmp_path / "belfast").iterdir()) == []
    finally:
        cluster.kill()


@pytest.mark.nightly
def test_a_quota_holds_over_a_restart_until_it_is_lifted(tmp_path: Path) -> None:
    needs(ETCD, VERSITYGW)
    cluster = cluster_in(tmp_path)
    cluster.start(lambda _: None)
    try:
        asyncio.run(create(cluster.layout.url, EngineSettings()))
        with anabranch.connect(cluster.layout.url, timeout=PATIENCE_S) as service:
            tended(cluster, lambda: placed(service))
            settings = described(service).settings
            service.log("ticks").set_quota(Quota(append_records_per_s=1, burst_ms=1))
            tended(cluster, (folder_of(tmp_path) / QUOTA_FILE).exists)
        assert settings is not None
        cluster.stop()
        cluster = cluster_in(tmp_path)
        cluster.start(lambda _: None)
        with closing(sync.connect(address_of(settings), timeout=PATIENCE_S)) as log:
            log.append(b"the shard is known", timeout=PATIENCE_S)
            values = [b"after"] * 1_000
            log.append_many(values, shard="shard-0", request_id="x", timeout=PATIENCE_S)
            with pytest.raises(QuotaExceeded, match="ticks may take 1 "):
                log.append(b"over", timeout=2)
        with anabranch.connect(cluster.layout.url, timeout=PATIENCE_S) as service:
            service.log("ticks").set_quota(Quota())
            tended(cluster, lambda: read(str(folder_of(tmp_path) / QUOTA_FILE)).quota == Quota())
            with closing(sync.connect(address_of(settings), timeout=PATIENCE_S)) as log:
                log.append(b"lifted", timeout=PATIENCE_S)
    finally:
        cluster.kill()


@pytest.mark.nightly
def test_a_program_that_appends_notices_a_pause_when_a_process_of_a_log_is_killed(
    tmp_path: Path,
) -> None:
    needs(ETCD, VERSITYGW)
    cluster = cluster_in(tmp_path)
    cluster.start(lambda _: None)
    try:
        left_to_it = EngineSettings(replicas=0, sequencers=0)
        made = asyncio.run(create(cluster.layout.url, left_to_it)).settings
        assert made is not None
        assert (made.replicas, made.sequencers) == (2, 3)
        with anabranch.connect(cluster.layout.url, timeout=PATIENCE_S) as service:
            tended(cluster, lambda: placed(service))
            log = service.log("ticks", engine="belfast")
            nodes = {node.name: node for node in cluster.processes}
            log.append(b"first")
            for name in ("ticks-shard-0-0", "ticks-shard-0-1", "ticks-sequencer-0"):
                nodes[name].kill()
                log.append(name.encode())
                nodes[name].start()
                log.append(b"both are there")
            values = [record.value for record in log.read(0)]
        assert values == [
            b"first",
            b"ticks-shard-0-0",
            b"both are there",
            b"ticks-shard-0-1",
            b"both are there",
            b"ticks-sequencer-0",
            b"both are there",
        ]
    finally:
        cluster.kill()


@pytest.mark.nightly
def test_a_log_whose_loss_is_accepted_begins_anew_at_other_addresses(tmp_path: Path) -> None:
    needs(ETCD, VERSITYGW)
    cluster = cluster_in(tmp_path)
    cluster.start(lambda _: None)
    try:
        asyncio.run(create(cluster.layout.url, EngineSettings()))
        with anabranch.connect(cluster.layout.url, timeout=PATIENCE_S) as service:
            tended(cluster, lambda: placed(service))
            service.log("ticks", engine="belfast").append(b"lost", timeout=PATIENCE_S)
            before = described(service).settings
        cluster.stop()
        shutil.rmtree(folder_of(tmp_path) / "ticks-shard-0-0")
        cluster = cluster_in(tmp_path)
        cluster.start(lambda _: None)
        cluster.tend()
        assert not any(node.name.startswith("ticks") for node in cluster.processes)
        cluster.stop()
        cluster = cluster_in(tmp_path, accept_loss=True)
        cluster.start(lambda _: None)
        with anabranch.connect(cluster.layout.url, timeout=PATIENCE_S) as service:
            tended(cluster, lambda: described(service).settings != before)
            log = service.log("ticks", engine="belfast")
            log.append(b"anew", timeout=PATIENCE_S)
            assert [each.value for each in log.read(timeout=PATIENCE_S)] == [b"anew"]
        assert len(list((tmp_path / "given-up").iterdir())) == 1
    finally:
        cluster.kill()
