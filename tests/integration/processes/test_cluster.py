"""A whole cluster under its supervisor, gateway included."""

import json
import sys
from collections.abc import Iterator
from contextlib import closing
from http import HTTPStatus
from http.client import HTTPConnection
from pathlib import Path
from threading import Event

import pytest
from tests.servers import needs

import anabranch
from anabranch.apps.processes.binaries import ETCD, VERSITYGW
from anabranch.apps.processes.cluster import Gateway, LocalCluster
from anabranch.apps.processes.layout import Shape, settle
from anabranch.apps.processes.ports import HOST
from anabranch.apps.processes.supervisor import Watch
from anabranch.shell.runtime.clock import Clock
from anabranch.shell.telemetry.log import Log, LogFormat

PATIENCE_S = 120.0


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[LocalCluster]:
    needs(ETCD, VERSITYGW)
    folder = tmp_path / "cluster"
    layout = settle(folder, Shape(etcd=1, metadata=1, brokers=1))
    # A machine that is busy with other things may take its time.
    settings = {"ANABRANCH_PATIENCE_MS": "60000"}
    cluster = LocalCluster(folder, layout, {"unsafe_no_fsync": "true"}, settings=settings)
    try:
        cluster.start(print)
        yield cluster
    finally:
        cluster.kill()


def post(gateway: Gateway, path: str, body: object) -> int:
    """Once: HTTP has no client that would try again."""
    with closing(HTTPConnection(HOST, gateway.port, timeout=PATIENCE_S)) as connection:
        connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
        return connection.getresponse().status


def test_the_gateway_serves_and_who_was_killed_is_started_again(cluster: LocalCluster) -> None:
    assert post(cluster.gateways[0], "/v1/logs", {"name": "first"}) == HTTPStatus.CREATED
    appended = {"records": [{"value": "at once"}]}
    assert post(cluster.gateways[0], "/v1/logs/first/records", appended) == HTTPStatus.CREATED
    with anabranch.connect(cluster.layout.url, timeout=PATIENCE_S) as service:
        orders = service.create("orders", timeout=PATIENCE_S)
        orders.append(b"before", timeout=PATIENCE_S)
        (broker,), (gateway,) = cluster.brokers, cluster.gateways
        said, pid = broker.output.read_bytes(), broker.pid
        broker.kill()
        log = Log(Clock().now, LogFormat.HUMAN, sys.stderr)
        watch, pause = Watch(log), Event()
        while not broker.running:
            watch.look(cluster.processes)
            pause.wait(0.02)
        assert broker.pid != pid
        assert said in broker.output.with_suffix(".log.1").read_bytes()
        orders.append(b"after", timeout=PATIENCE_S)
    with closing(HTTPConnection(HOST, gateway.port, timeout=PATIENCE_S)) as connection:
        connection.request("GET", "/v1/logs/orders")
        assert json.loads(connection.getresponse().read())["tail"] == 2
    cluster.stop()
    assert not any(process.running for process in cluster.processes)
