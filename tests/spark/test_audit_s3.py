"""An audit of a cluster over S3: what it finds it finds through signed URLs alone."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.servers import needs

import anabranch
from anabranch.apps.processes.binaries import ETCD, VERSITYGW
from anabranch.apps.processes.cluster import LocalCluster
from anabranch.apps.processes.layout import Shape, settle
from anabranch_spark.audit.job import Audit
from anabranch_spark.audit.report import LogReport
from anabranch_spark.audit.shares import Answer, Share
from anabranch_spark.audit.task import answered

PATIENCE_S = 120.0


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[LocalCluster]:
    needs(ETCD, VERSITYGW)
    folder = tmp_path / "cluster"
    layout = settle(folder, Shape(etcd=1, metadata=1, brokers=1))
    settings = {"ANABRANCH_PATIENCE_MS": "60000"}
    etcd = {"unsafe_no_fsync": "true"}
    cluster = LocalCluster(folder, layout, etcd, with_gateway=False, settings=settings)
    try:
        cluster.start(print)
        yield cluster
    finally:
        cluster.kill()


def here(shares: list[Share]) -> list[Answer]:
    return [answered(each) for each in shares]


@pytest.mark.nightly
def test_damage_in_a_bucket_is_found_without_its_keys(cluster: LocalCluster) -> None:
    url = cluster.layout.url
    with anabranch.connect(url, timeout=PATIENCE_S) as service:
        orders = service.create("orders", timeout=PATIENCE_S)
        for turn in range(6):
            orders.append_many([b"%d a" % turn, b"%d b" % turn], request_id=f"turn {turn}")

        def audited() -> LogReport:
            (report,) = Audit(service, url, run=here, say=print).of(["orders"]).logs
            return report

        sound = audited()
        assert (sound.verdict, sound.records, sound.footers) == ("sound", 12, 0)
        assert sound.sum is not None
        assert sound.sum.equal

        objects = [each for each in cluster.s3.buckets.rglob("*/data/*/*") if each.is_file()]
        objects.sort()
        content = bytearray(objects[1].read_bytes())
        content[70] ^= 1
        objects[1].write_bytes(content)
        objects[4].unlink()
        harmed = audited()
        assert harmed.verdict == "damaged"
        assert [(each.kind, each.position) for each in harmed.damage] == [
            ("corrupt-batch", 2),
            ("object-missing", 8),
        ]
        assert [Path(each.object).name for each in harmed.damage] == [
            objects[1].name,
            objects[4].name,
        ]

        cluster.s3.kill()
        away = audited()
        assert away.verdict == "unknown"
        assert away.damage == []
        assert "object store" in away.obstacles[0]
