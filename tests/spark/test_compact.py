"""Compaction of real services: every record stays, and what isn't a copy changes nothing."""

from __future__ import annotations

import json
import shlex
import signal
import time
from collections.abc import Callable, Iterator
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace
from tests.documents import blocks
from tests.integration.server_process import Process, running
from tests.servers import needs

import anabranch
from anabranch import CompactorJob, Log, Service
from anabranch.apps.processes.binaries import ETCD, VERSITYGW
from anabranch.apps.processes.cluster import LocalCluster
from anabranch.apps.processes.layout import Shape, settle
from anabranch.cli.failure import Exit, run
from anabranch.cli.main import PROGRAM, cli
from anabranch.core.bolt.protocol.compactors import NewCopy
from anabranch.core.records.objects import ObjectName
from anabranch.errors import BadRequest, CompactorEnded
from anabranch_spark.compact import job
from anabranch_spark.compact.__main__ import main
from anabranch_spark.compact.copying import copied
from anabranch_spark.compact.job import Compaction
from anabranch_spark.compact.report import CompactReport
from anabranch_spark.compact.shares import (
    Answer,
    Share,
    packed,
    unpacked_answer,
    unpacked_share,
)
from anabranch_spark.compact.task import answered
from anabranch_spark.compact.writing import write
from anabranch_spark.source.fetch import Fetcher

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

APPENDS = 60
DEADLINE_S = 60.0
PATIENCE_S = 120.0
LIMITS = """
[limits]
compact_extents_min = 0
compact_age_ms = 0
compact_wait_ms = 100
compact_span_ms = 1000000000000
gc_interval_ms = 20
grace_ms = 200
signed_url_ms = 1000
cache_bytes = 1
"""
"""Brokers copy nothing by themselves; extents become one however long the appends took."""


class Running:
    """A service on a folder of its own."""

    def __init__(self, process: Process, data: Path, service: Service) -> None:
        self.process, self.data, self.service = process, data, service
        self.url = f"anabranch://127.0.0.1:{process.port}"

    def compact(self, *names: str, run: job.Run | None = None, **more: int) -> CompactReport:
        """As the job does it, with the tasks in this process."""
        compaction = Compaction(self.service, self.url, run=run or here, say=print, **more)
        return compaction.of(list(names) or None, "a test")

    def file(self, object: int) -> Path:
        name = str(ObjectName.of(self.service.survey().cluster, object))  # type: ignore[arg-type]
        (found,) = (self.data / "objects").rglob(name.rpartition("/data/")[2])
        return found

    def fsck(self, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
        self.process.end(signal.SIGTERM)
        capsys.readouterr()
        assert run(cli, PROGRAM, ["fsck", "--data", str(self.data), "-o", "json"]) == Exit.OK
        return json.loads(capsys.readouterr().out)


def here(shares: list[Share]) -> list[Answer]:
    """Tasks travel as bytes here too."""
    return [unpacked_answer(packed(answered(unpacked_share(packed(each))))) for each in shares]


@pytest.fixture
def world(tmp_path: Path) -> Iterator[Running]:
    settings = tmp_path / "settings.toml"
    settings.write_text(LIMITS)
    data = tmp_path / "data"
    data.mkdir()
    with running(data, "--config", str(settings)) as process:
        url = f"anabranch://127.0.0.1:{process.port}"
        with anabranch.connect(url) as service:
            yield Running(process, data, service)


def filled(service: Service, name: str = "orders", appends: int = APPENDS) -> list[bytes]:
    log = service.create(name)
    values = [b"%d of %s" % (turn, name.encode()) for turn in range(appends)]
    for value in values:
        log.append(value)  # one object each
    return values


def read(log: Log) -> list[bytes | None]:
    return [record.value for record in log.read(0)]


def until(reached: Callable[[], bool]) -> None:
    pause, deadline = Event(), time.monotonic() + DEADLINE_S
    while not reached():
        assert time.monotonic() < deadline
        pause.wait(0.02)


def extents(log: Log) -> list[int]:
    """The objects of a log's extents."""
    with log.plan_scan() as plan:
        return [each.object for page in plan.pages() for each in page]


def test_every_log_is_compacted_under_whoever_forks_appends_and_reads(
    world: Running, capsys: pytest.CaptureFixture[str]
) -> None:
    service = world.service
    expected = filled(service)
    orders = service.log("orders", engine="bolt")
    live = orders.cfork("live")
    past = orders.sfork("past", past=41)
    past.append(b"otherwise")
    other = filled(service, "other", appends=5)
    plan = orders.cfork("plan", promotable=True)

    def under_way(shares: list[Share]) -> list[Answer]:
        orders.append(b"meanwhile")
        return here(shares)

    with orders.plan_scan() as reading:
        before = [each for page in reading.pages() for each in page]
        report = world.compact(run=under_way)
        assert report.verdict == "done"
        signed = reading.sign(before)
        assert signed, "whoever planned before still gets what the plan names"
    plan.squash()
    by_name = {each.log: each for each in report.logs}
    assert (by_name["orders"].extents, by_name["orders"].copies) == (APPENDS, 1)
    assert by_name["other"].copies == 1
    assert by_name["other"].fewer > 0
    assert read(orders)[:APPENDS] == read(live)[:APPENDS] == expected
    assert read(past) == [*expected[:42], b"otherwise"]
    assert read(service.log("other", engine="bolt")) == other
    assert [each.ended > 0 for each in service.compactors()] == [True]
    until(lambda: service.survey().garbage_objects == 0)
    assert read(orders)[:APPENDS] == expected
    assert world.fsck(capsys)["sound"] is True


def test_waves_and_passes_go_on_until_nothing_is_left(
    world: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = filled(world.service)
    monkeypatch.setattr(job, "WAVE_EXTENTS", 1)
    report = world.compact("orders")
    (orders,) = report.logs
    assert (report.verdict, orders.fewer > 0, orders.obstacles) == ("done", True, [])
    log = world.service.log("orders", engine="bolt")
    assert len({*extents(log)}) == 1
    assert read(log) == expected
    assert orders.sum == log.set_sum().sum != 0
    (again,) = world.compact("orders").logs
    assert (again.copies, again.waves) == (0, 0)


def test_what_a_job_left_behind_is_swept_when_its_urls_are_over(world: Running) -> None:
    filled(world.service)

    def dies(shares: list[Share]) -> list[Answer]:
        here(shares)
        return []

    report = world.compact("orders", run=dies)
    assert (report.logs[0].copies, report.verdict) == (0, "done")
    (ended,) = world.service.compactors()
    with pytest.raises(CompactorEnded):
        world.service.running_compactor(ended).renew()
    folder = world.data / "objects"
    assert [*folder.rglob(f"data/{ended.id:08}/*")]
    # Its lease is long, so that nothing of it can be swept in the time of a test.
    assert len(read(world.service.log("orders", engine="bolt"))) == APPENDS


def test_a_compactor_that_lapses_leaves_nothing(world: Running) -> None:
    filled(world.service, appends=6)
    compactor = world.service.compactor("short", lease=0.5)
    sequence = written(world, compactor)
    folder = world.data / "objects"
    assert [*folder.rglob(f"data/{compactor.description.id:08}/*")]
    until(lambda: not world.service.compactors())
    until(lambda: not [*folder.rglob(f"data/{compactor.description.id:08}/*")])
    assert sequence == 1
    assert len(read(world.service.log("orders", engine="bolt"))) == 6


def written(
    world: Running,
    compactor: CompactorJob,
    sequence: int = 1,
    change: Callable[[bytes], bytes] = lambda content: content,
) -> int:
    """Take one copy and write it, but adopt nothing."""
    with world.service.log("orders", engine="bolt").plan_scan() as plan:
        (order,) = compactor.take(plan).orders
        with Fetcher() as fetcher:
            content = change(copied(order, plan, fetcher, world.service.survey().cluster))
        (target,) = compactor.sign([NewCopy(sequence, len(content), sha256(content).digest())])
        write(target, content)
    world.order, world.size = order, len(content)  # type: ignore[attr-defined]
    return sequence


def test_a_wrong_copy_is_never_referred_to_whatever_its_writer_says(world: Running) -> None:
    expected = filled(world.service, appends=8)
    log = world.service.log("orders", engine="bolt")
    before = extents(log)
    with world.service.compactor("a liar") as compactor:
        written(world, compactor, 1, lambda content: content[:70] + b"?" + content[71:])
        order, size = world.order, world.size  # type: ignore[attr-defined]
        assert compactor.adopt(order, 1, size).why
        with pytest.raises(BadRequest, match="write it first"):
            compactor.adopt(order, 2, size)
        written(world, compactor, 3)
        lying = replace(order, extents=[replace(each, sum=0) for each in order.extents])
        assert compactor.adopt(lying, 3, size).fewer > 0, "the broker reads the sums itself"
        assert compactor.adopt(order, 3, size).fewer > 0, "as the first time"
        with pytest.raises(BadRequest, match="later one"):
            compactor.adopt(order, 1, size)
    assert {*extents(log)}.isdisjoint(before)
    assert read(log) == expected


def test_damage_is_found_before_it_is_copied(world: Running) -> None:
    expected = filled(world.service, appends=8)
    log = world.service.log("orders", engine="bolt")
    place = world.file(extents(log)[3])
    whole = place.read_bytes()
    place.chmod(0o600)
    place.write_bytes(whole[:65] + bytes([whole[65] ^ 1]) + whole[66:])
    report = world.compact("orders")
    (orders,) = report.logs
    assert (report.verdict, orders.damages, orders.copies) == ("damaged", 1, 0)
    assert "at position 3" in orders.damage[0]
    place.write_bytes(whole)
    assert world.compact("orders").verdict == "done"
    assert read(log) == expected


def test_a_service_that_goes_away_leaves_the_job_undone_and_the_log_whole(world: Running) -> None:
    expected = filled(world.service, appends=8)

    def killed(shares: list[Share]) -> list[Answer]:
        raise anabranch.errors.Unavailable("Spark", "it is gone")

    report = world.compact("orders", run=killed)
    assert report.verdict == "unknown"
    assert report.logs[0].obstacles
    assert "Spark" in report.obstacles[0]
    assert read(world.service.log("orders", engine="bolt")) == expected


def test_logs_of_other_engines_are_skipped_and_unknown_ones_said(world: Running) -> None:
    world.service.create("quick", engine="erwin")
    report = world.compact()
    assert report.verdict == "done"
    assert "quick" in report.skipped[0]
    missing = world.compact("nowhere")
    assert (missing.verdict, missing.logs[0].verdict) == ("unknown", "unknown")


def called(command: str) -> int:
    """The exit code of one command."""
    module, *words = shlex.split(command.removeprefix("python -m "))
    main: Callable[[list[str]], int] = import_module(f"{module}.__main__").main
    return main(words)


def test_a_submitted_job_writes_its_report_and_exits_with_its_verdict(
    spark: SparkSession,
    world: Running,
    root: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    expected = filled(world.service)
    page = "docs/howto/spark-compact.md"
    commands = [line for block in blocks(root) if block.page == page for line in block.commands]
    monkeypatch.setenv("ANABRANCH_URL", world.url)
    assert [called(each) for each in commands] == [0, 0, 0]
    assert len({*extents(world.service.log("orders", engine="bolt"))}) == 1
    path = tmp_path / "report.json"
    words = ["--log", "orders", "--service", world.url, "--report", str(path)]
    assert main(words) == 0
    report = json.loads(path.read_text())
    assert (report["verdict"], report["logs"][0]["copies"]) == ("done", 0)
    assert read(world.service.log("orders", engine="bolt")) == expected
    assert main([*words, "--all"]) == 3
    assert main(["--log", "nowhere", "--service", world.url, "--report", str(path)]) == 3


@pytest.mark.nightly
def test_a_bucket_is_compacted_without_its_keys(tmp_path: Path) -> None:
    needs(ETCD, VERSITYGW)
    layout = settle(tmp_path / "cluster", Shape(etcd=1, metadata=1, brokers=1))
    settings = {
        "ANABRANCH_PATIENCE_MS": "60000",
        "ANABRANCH_COMPACT_EXTENTS_MIN": "0",
        "ANABRANCH_COMPACT_AGE_MS": "0",
    }
    cluster = LocalCluster(
        tmp_path / "cluster",
        layout,
        {"unsafe_no_fsync": "true"},
        with_gateway=False,
        settings=settings,
    )
    try:
        cluster.start(print)
        with anabranch.connect(layout.url, timeout=PATIENCE_S) as service:
            orders = service.create("orders", timeout=PATIENCE_S)
            expected = [b"%d" % turn for turn in range(20)]
            for value in expected:
                orders.append(value)
            compaction = Compaction(service, layout.url, run=here, say=print)
            (report,) = compaction.of(["orders"], "a test").logs
            assert (report.verdict, report.copies, report.in_vain) == ("done", 1, 0)
            assert report.obstacles == []
            assert len({*extents(orders)}) == 1
            assert read(orders) == expected
    finally:
        cluster.kill()
