"""Everything that was acknowledged comes back from the bucket alone."""

import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.servers import needs

import anabranch
from anabranch.apps.processes.binaries import ETCD, VERSITYGW
from anabranch.apps.processes.cluster import LocalCluster
from anabranch.apps.processes.layout import Shape, settle
from anabranch.core.errors import AnabranchError

FSCK = [sys.executable, "-m", "anabranch.cli.main", "fsck", "--output", "json"]
RECOVER = [sys.executable, "-m", "anabranch.cli.main", "recover", "--output", "json"]


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[LocalCluster]:
    needs(ETCD, VERSITYGW)
    folder = tmp_path / "cluster"
    cluster = LocalCluster(
        folder,
        settle(folder, Shape(etcd=1, metadata=2, brokers=2)),
        {"unsafe_no_fsync": "true"},
        with_gateway=False,
        settings={"ANABRANCH_ARCHIVE": "sync"},
    )
    cluster.start(lambda _: None)
    try:
        yield cluster
    finally:
        cluster.kill()


class Appender(threading.Thread):
    """Appends until it can't, and knows what was acknowledged."""

    def __init__(self, log: anabranch.Log) -> None:
        super().__init__()
        self._log = log
        self.acknowledged: dict[int, bytes] = {}
        self.busy = threading.Event()

    def run(self) -> None:
        turn = 0
        try:
            while True:
                value = b"%s %d" % (self._log.name.encode(), turn)
                position = self._log.append(value, timeout=5).position
                assert position is not None
                self.acknowledged[position] = value
                turn += 1
                if turn == 20:
                    self.busy.set()
        except AnabranchError:
            self.busy.set()


def recover(cluster: LocalCluster, *flags: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, **cluster.place.environment}
    told = ["--cluster", cluster.layout.cluster, *flags]
    command = [*RECOVER, *told]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def lose_etcd(cluster: LocalCluster) -> None:
    cluster.etcd.kill()
    for member in cluster.etcd.members:
        shutil.rmtree(cluster.etcd.folder / member.name / "data")
    cluster.etcd.start()


def test_all_that_was_acknowledged_is_there_again(cluster: LocalCluster) -> None:
    with anabranch.connect(cluster.layout.url) as service:
        orders = service.create("orders")
        orders.append_many([b"%d" % number for number in range(100)])
        past = orders.sfork("past", past=49, why="what if")
        chosen = orders.cfork("chosen", promotable=True)
        chosen.append(b"of the fork")
        chosen.promote()
        appenders = [Appender(orders), Appender(past)]
        for appender in appenders:
            appender.start()
        for appender in appenders:
            assert appender.busy.wait(60)
        orders.cursor("reader").commit(7)
        for process in (*cluster.metadata, cluster.etcd.members[0], *cluster.brokers, cluster.s3):
            process.kill()
    for appender in appenders:
        appender.join()
    lose_etcd(cluster)
    cluster.s3.start()
    told = recover(cluster, "--from-bucket")
    assert told.returncode == 0, told.stderr
    report = json.loads(told.stdout)
    assert (report["logs"], report["forks"], report["missing"]) == (1, 1, [])
    cluster.start(lambda _: None)
    with anabranch.connect(cluster.layout.url) as service:
        orders = service.log("orders", engine="bolt")
        past = service.log("orders--past")
        assert [each.value for each in orders.read(0, 101)][99:] == [b"99", b"of the fork"]
        assert orders.cursors()["reader"] == 7
        for log, appender in zip((orders, past), appenders, strict=True):
            assert appender.acknowledged
            held = {each.position: each.value for each in log.read(0, 1_000_000)}
            assert appender.acknowledged.items() <= held.items()
        assert past.append(b"and on").position == past.tail() - 1


def test_what_is_not_lost_is_not_recovered_and_can_be_proved_while_it_runs(
    cluster: LocalCluster,
) -> None:
    with anabranch.connect(cluster.layout.url) as service:
        service.create("orders").append_many([b"%d" % number for number in range(100)])
    environment = {**os.environ, **cluster.place.environment}
    command = [*FSCK, "--cluster", cluster.layout.cluster]
    proved = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert proved.returncode == 0, proved.stdout + proved.stderr
    report = json.loads(proved.stdout)
    assert (report["sound"], report["online"], report["records"]) == (True, True, 100)
    told = recover(cluster, "--from-bucket")
    assert told.returncode != 0
    assert "isn't lost" in told.stderr
    assert recover(cluster).returncode == 2
    assert "--from-bucket" in recover(cluster).stderr


def test_an_etcd_that_lost_everything_is_refused_with_what_to_do(cluster: LocalCluster) -> None:
    member = cluster.metadata[0]
    member.stop()
    lose_etcd(cluster)
    member.launch()
    member.wait_ended()
    assert "anabranch recover --from-bucket" in member.output.read_text()
