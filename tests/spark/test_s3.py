"""A cluster on an S3 server: tasks fetch with signed URLs, and hold no keys."""

from collections.abc import Iterator
from threading import Event
from urllib.parse import urlsplit

import pytest
from tests.servers import needs

import anabranch
from anabranch.apps.processes.binaries import ETCD, VERSITYGW
from anabranch.apps.processes.cluster import LocalCluster
from anabranch.apps.processes.layout import Shape, settle
from anabranch_spark.options import read_options
from anabranch_spark.source.decoders.batches import Wanted
from anabranch_spark.source.fetch import AHEAD_MAX
from anabranch_spark.source.planning import planned
from anabranch_spark.source.reading import Scan, read_part

PATIENCE_S = 120.0
VALID_S = 1.0


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    needs(ETCD, VERSITYGW)
    folder = tmp_path_factory.mktemp("cluster") / "cluster"
    layout = settle(folder, Shape(etcd=1, metadata=1, brokers=1))
    settings = {
        "ANABRANCH_PATIENCE_MS": "60000",
        "ANABRANCH_SIGNED_URL_MS": str(round(VALID_S * 1_000)),
    }
    cluster = LocalCluster(folder, layout, {"unsafe_no_fsync": "true"}, settings=settings)
    try:
        cluster.start(lambda _: None)
        yield layout.url
    finally:
        cluster.kill()


@pytest.fixture
def service(url: str) -> Iterator[anabranch.Service]:
    with anabranch.connect(url, timeout=PATIENCE_S) as service:
        yield service


def test_a_scan_reads_through_signed_urls_what_a_client_reads(
    url: str, service: anabranch.Service
) -> None:
    log = service.create("orders", timeout=PATIENCE_S)
    log.append_many([b"%d" % nth for nth in range(3_000)], timeout=PATIENCE_S)
    for nth in range(10):
        log.append(b"later %d" % nth, timeout=PATIENCE_S)
    parts = planned(service, read_options({"log": "orders", "minPartitions": "3"}, "batch"))
    assert len(parts) == 3
    (place, *_) = service.scan_plan(parts[0].plan).sign(parts[0].slices)
    assert urlsplit(place.url).scheme == "http"
    found = [
        (row["position"], row["value"])
        for part in parts
        for batch in read_part(part, ("position", "value"), service=url, ask_broker=False)
        for row in batch.to_pylist()
    ]
    assert found == [(record.position, record.value) for record in log.read()]


def test_urls_that_lapse_while_nobody_takes_rows_are_signed_again(
    service: anabranch.Service,
) -> None:
    log = service.create("slowly", timeout=PATIENCE_S)
    for nth in range(3 * AHEAD_MAX):
        log.append(b"%d" % nth, timeout=PATIENCE_S)
    (part,) = planned(service, read_options({"log": "slowly"}, "batch"))
    assert len(part.slices) > 2 * AHEAD_MAX
    stretches = Scan(service, part, Wanted(), ask_broker=False).stretches()
    found = next(stretches)
    Event().wait(2 * VALID_S)  # what has to pass is the store's own time
    for more in stretches:
        found += more
    assert [value for each in found for value in each.values.to_pylist()] == [
        b"%d" % nth for nth in range(3 * AHEAD_MAX)
    ]
