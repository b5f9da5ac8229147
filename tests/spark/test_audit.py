"""An audit of real services: what is sound passes, and each kind of damage is found and placed."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING

import msgspec
import pytest
from tests.integration.server_process import Process, running

import anabranch
from anabranch import Log, Service
from anabranch.core.records.objects import ObjectName
from anabranch_spark.audit import inspection, job, reading
from anabranch_spark.audit.__main__ import main
from anabranch_spark.audit.job import Audit
from anabranch_spark.audit.report import AuditReport, LogReport
from anabranch_spark.audit.shares import (
    Answer,
    Share,
    packed,
    unpacked_answer,
    unpacked_share,
)
from anabranch_spark.audit.task import answered

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


DEADLINE_S = 60.0
LIMITS = """
[limits]
compact_extents_min = 4
compact_age_ms = 0
gc_interval_ms = 20
grace_ms = 1000
cache_bytes = 1
"""


class Running:
    """A service on a folder of its own."""

    def __init__(self, process: Process, data: Path, service: Service) -> None:
        self.process, self.data, self.service = process, data, service
        self.url = f"anabranch://127.0.0.1:{process.port}"

    def audit(self, *names: str) -> AuditReport:
        """As the job does it, with the tasks in this process."""
        auditing = Audit(self.service, self.url, run=_here, say=lambda _: None)
        return auditing.of(list(names) or None)

    def of(self, name: str) -> LogReport:
        (report,) = self.audit(name).logs
        return report

    def objects(self, log: Log) -> list[Path]:
        """The files of a log's extents, in order of position."""
        cluster = self.service.survey().cluster
        with log.plan_scan() as plan:
            ids = [each.object for page in plan.pages() for each in page]
        names = [str(ObjectName.of(cluster, each)) for each in dict.fromkeys(ids)]
        return [self.file(each) for each in names]

    def file(self, name: str) -> Path:
        (found,) = (self.data / "objects").rglob(name.rpartition("/data/")[2])
        return found


def _here(shares: list[Share]) -> list[Answer]:
    """Tasks travel as bytes here too."""
    return [unpacked_answer(packed(answered(unpacked_share(packed(each))))) for each in shares]


@pytest.fixture
def world(tmp_path: Path) -> Iterator[Running]:
    with running(tmp_path) as process:
        url = f"anabranch://127.0.0.1:{process.port}"
        with anabranch.connect(url) as service:
            yield Running(process, tmp_path, service)


@pytest.fixture
def compacting(tmp_path: Path) -> Iterator[Running]:
    """A service that compacts at once, and deletes after a second."""
    settings = tmp_path / "settings.toml"
    settings.write_text(LIMITS)
    data = tmp_path / "data"
    data.mkdir()
    with running(data, "--config", str(settings)) as process:
        url = f"anabranch://127.0.0.1:{process.port}"
        with anabranch.connect(url) as service:
            yield Running(process, data, service)


def filled(service: Service, name: str, turns: int = 6) -> Log:
    """A log of as many extents, each of two records."""
    log = service.create(name)
    for turn in range(turns):
        together(log, b"%d a" % turn, b"%d b" % turn)
    return log


def together(log: Log, *values: bytes) -> None:
    """Append as one batch, and so as one extent."""
    log.append_many(values, request_id=f"{log.name} {values}")


def until(reached: Callable[[], bool]) -> None:
    pause, deadline = Event(), time.monotonic() + DEADLINE_S
    while not reached():
        assert time.monotonic() < deadline
        pause.wait(0.02)


def test_a_sound_log_passes_with_equal_sums_and_every_byte_read(world: Running) -> None:
    log = filled(world.service, "orders")
    report = world.of("orders")
    assert report.verdict == "sound"
    assert (report.start, report.end, report.records, report.extents) == (0, 12, 12, 6)
    assert report.covered
    assert report.footers == report.objects == 6
    assert report.sum is not None
    assert report.sum.equal
    assert report.sum.computed == log.set_sum().sum != 0
    assert report.sum.computed_records == 12


def test_an_empty_log_is_sound(world: Running) -> None:
    world.service.create("empty")
    assert world.of("empty").verdict == "sound"


def test_forks_and_promotions_are_audited_as_their_readers_see_them(world: Running) -> None:
    orders = filled(world.service, "orders")
    live = orders.cfork("live")
    live.append_many([b"x", b"y"])
    past = orders.sfork("past", past=4)
    past.append(b"otherwise")
    gated = orders.cfork("gated", promotable=True)
    orders.append(b"after")
    gated.append_many([b"p", b"q"])
    gated.promote()
    orders.append(b"last")
    report = world.audit()
    assert report.verdict == "sound"
    assert {each.log for each in report.logs} == {each.name for each in world.service.logs()}
    assert {each.verdict for each in report.logs} == {"sound"}
    assert all(each.sum is not None and each.sum.equal for each in report.logs)
    assert sum(each.records for each in report.logs) == 40
    # The fork's point cuts an extent, of which the service keeps no sum for the fork.
    (past_report,) = [each for each in report.logs if each.log == past.name]
    assert past_report.sum is not None
    assert past_report.sum.unsummed_records > 0


def test_records_of_a_fork_between_two_parts_of_an_extent_sum_up_once(world: Running) -> None:
    orders = world.service.create("orders")
    together(orders, b"1", b"2", b"3", b"4")
    fork = orders.cfork("fork")
    fork.append(b"mine")
    together(orders, b"5", b"6")
    fork.append(b"mine too")
    report = world.of(fork.name)
    assert report.verdict == "sound"
    assert report.records == 8
    assert report.sum is not None
    assert report.sum.unsummed_records == 0


def test_a_trimmed_log_is_audited_from_where_it_begins(world: Running) -> None:
    orders = filled(world.service, "orders")
    orders.trim(5)
    report = world.of("orders")
    assert report.verdict == "sound"
    assert (report.start, report.end, report.records) == (5, 12, 7)
    assert report.sum is not None
    assert report.sum.unsummed == [(5, 6)], "the trim cut an extent"


def test_a_flipped_byte_is_found_with_object_and_position(world: Running) -> None:
    log = filled(world.service, "orders")
    object = world.objects(log)[3]
    content = bytearray(object.read_bytes())
    content[70] ^= 1
    object.write_bytes(content)
    report = world.of("orders")
    assert report.verdict == "damaged"
    assert [(each.kind, each.position) for each in report.damage] == [("corrupt-batch", 6)]
    assert report.damage[0].object.endswith(object.name)
    assert report.records == 10


def test_a_missing_object_is_found_with_object_and_position(world: Running) -> None:
    log = filled(world.service, "orders")
    object = world.objects(log)[2]
    object.unlink()
    report = world.of("orders")
    assert report.verdict == "damaged"
    assert [(each.kind, each.position) for each in report.damage] == [("object-missing", 4)]
    assert report.damage[0].object.endswith(object.name)


def test_an_object_that_is_cut_short_is_damage(world: Running) -> None:
    log = filled(world.service, "orders")
    object = world.objects(log)[1]
    object.write_bytes(object.read_bytes()[:50])
    report = world.of("orders")
    assert [(each.kind, each.position) for each in report.damage] == [("object-short", 2)]


def test_a_damaged_footer_is_found(world: Running) -> None:
    log = filled(world.service, "orders")
    object = world.objects(log)[5]
    content = bytearray(object.read_bytes())
    content[-20] ^= 1
    object.write_bytes(content)
    report = world.of("orders")
    assert [(each.kind, each.position) for each in report.damage] == [("footer", 10)]


def copy_over(source: Path, target: Path) -> None:
    """Sound contents of the same size and counts, which belong elsewhere."""
    target.write_bytes(source.read_bytes())


def test_other_sound_batches_are_found_by_their_sum_and_placed(world: Running) -> None:
    objects = world.objects(filled(world.service, "orders"))
    copy_over(objects[1], objects[4])
    object = objects[4]
    report = world.of("orders")
    assert report.verdict == "damaged"
    assert [(each.kind, each.position) for each in report.damage] == [("set-sum", 8)]
    assert report.damage[0].object.endswith(object.name)
    assert report.sum is not None
    assert not report.sum.equal


def test_only_the_damaged_log_of_all_is_reported(world: Running) -> None:
    filled(world.service, "fine")
    object = world.objects(filled(world.service, "harmed"))[0]
    object.unlink()
    report = world.audit()
    assert report.verdict == "damaged"
    assert {each.log: each.verdict for each in report.logs} == {
        "fine": "sound",
        "harmed": "damaged",
    }


def test_an_audit_beside_compaction_and_trims_stays_right(compacting: Running) -> None:
    orders = filled(compacting.service, "orders", 40)
    auditing = Audit(
        compacting.service,
        compacting.url,
        run=_after_compaction(compacting, orders),
        say=lambda _: None,
    )
    (report,) = auditing.of(["orders"]).logs
    assert report.verdict == "sound"
    assert (report.start, report.records) == (0, 80)
    assert report.sum is not None
    assert report.sum.equal
    (after,) = compacting.audit().logs
    assert after.verdict == "sound"
    assert after.extents < 40, "it was compacted"


def _after_compaction(world: Running, log: Log) -> Callable[[list[Share]], list[Answer]]:
    """Tasks that begin when all that they were told to read was moved elsewhere, and trimmed."""

    def run(shares: list[Share]) -> list[Answer]:
        until(lambda: world.service.survey().extents < 30)
        log.trim(21)
        until(lambda: world.service.plans().held_objects > 0)
        return _here(shares)

    return run


def test_what_is_missing_after_the_plan_ended_is_no_damage(compacting: Running) -> None:
    orders = filled(compacting.service, "orders", 40)

    def run(shares: list[Share]) -> list[Answer]:
        until(lambda: compacting.service.survey().extents < 30)
        compacting.service.erase_garbage()
        until(lambda: compacting.service.survey().garbage_objects == 0)
        return _here(shares)

    auditing = Audit(compacting.service, compacting.url, run=run, say=lambda _: None)
    (report,) = auditing.of([orders.name]).logs
    assert report.verdict == "unknown"
    assert report.damage == []
    assert "has ended" in report.obstacles[-1]


@pytest.mark.nightly
def test_a_service_that_goes_away_leaves_the_verdict_open(world: Running) -> None:
    filled(world.service, "orders")

    def run(shares: list[Share]) -> list[Answer]:
        world.process.end(signal.SIGKILL)
        return _here(shares)

    report = Audit(world.service, world.url, run=run, say=lambda _: None).of(["orders"])
    assert report.verdict == "unknown"
    assert report.logs == []
    assert "can't be reached" in report.obstacles[0]


def test_a_task_that_answers_nothing_leaves_the_verdict_open(world: Running) -> None:
    filled(world.service, "orders")
    auditing = Audit(world.service, world.url, run=lambda _: [], say=lambda _: None)
    (report,) = auditing.of(["orders"]).logs
    assert report.verdict == "unknown"
    assert report.obstacles == ["6 of 6 extents weren't read"]
    assert world.service.plans().plans == [], "its plan was ended"


def flip(path: Path, at: int) -> None:
    content = bytearray(path.read_bytes())
    content[at] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize(
    ("module", "check", "mutant", "harm"),
    [
        (reading, "footer_damage", lambda *_: [], lambda found: flip(found[5], -20)),
        (inspection, "verify", lambda *_: None, lambda found: flip(found[5], 70)),
        (job, "comparable", lambda *_: False, lambda found: copy_over(found[1], found[4])),
    ],
    ids=["footer", "checksum", "sum"],
)
def test_each_damage_is_seen_by_the_check_that_is_there_for_it(
    world: Running,
    monkeypatch: pytest.MonkeyPatch,
    module: object,
    check: str,
    mutant: Callable[..., object],
    harm: Callable[[list[Path]], None],
) -> None:
    """An audit without the check takes a harmed log for sound: so the others don't see it."""
    harm(world.objects(filled(world.service, "orders")))
    assert world.of("orders").verdict == "damaged"
    monkeypatch.setattr(module, check, mutant)
    assert world.of("orders").verdict == "sound"


def test_a_page_that_leaves_out_a_slice_is_seen(
    world: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(world.service, "orders")
    pages = anabranch.ScanPlan.pages

    def fewer(plan: anabranch.ScanPlan) -> Iterator[list[anabranch.PlannedSlice]]:
        for page in pages(plan):
            yield [each for each in page if each.first != 4]

    monkeypatch.setattr(anabranch.ScanPlan, "pages", fewer)
    report = world.of("orders")
    assert report.verdict == "damaged"
    assert not report.covered
    assert ("coverage", 4) in [(each.kind, each.position) for each in report.damage]


def test_the_job_audits_on_spark_and_its_exit_code_is_the_verdict(
    spark: SparkSession, world: Running, tmp_path: Path
) -> None:
    log = filled(world.service, "orders", 30)
    filled(world.service, "small", 1)
    path = tmp_path / "report.json"
    words = ["--all", "--service", world.url, "--report", str(path)]
    assert main(words) == 0
    sound = msgspec.json.decode(path.read_bytes(), type=AuditReport)
    assert {each.log: each.records for each in sound.logs} == {"orders": 60, "small": 2}
    world.objects(log)[7].unlink()
    assert main(words) == 2
    found = msgspec.json.decode(path.read_bytes(), type=AuditReport)
    assert [each.position for each in found.logs[0].damage] == [14]
    world.process.end(signal.SIGKILL)
    assert main(words) == 3
    away = msgspec.json.decode(path.read_bytes(), type=AuditReport)
    assert away.verdict == "unknown"
    assert away.obstacles


def test_a_wrong_command_line_is_no_verdict_on_the_data(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 3
    assert "--all" in capsys.readouterr().err
    assert main(["--log", "orders", "--al"]) == 3
