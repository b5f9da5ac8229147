"""Parts of a scan are read from the store, whatever becomes of the log, its plan and its objects.

These tests need no Spark: they run what its driver and its tasks run.
"""

import signal
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.integration.server_process import Process

import anabranch
from anabranch.errors import (
    AnabranchError,
    OutOfRange,
    PlanOutdated,
    Promoted,
    ReadBlocked,
    RecordsDamaged,
    Unavailable,
)
from anabranch_spark.options import read_options
from anabranch_spark.source.decoders.batches import Wanted
from anabranch_spark.source.fetch import Fetcher, UrlRefused
from anabranch_spark.source.parts import Part
from anabranch_spark.source.planning import planned
from anabranch_spark.source.predicates import ALL, Within
from anabranch_spark.source.reading import Scan, read_part

Start = Callable[..., tuple[Process, str]]


@dataclass
class Reader:
    """What a driver and its tasks do, one after the other."""

    url: str
    service: anabranch.Service

    def plan(self, log: str, within: Within = ALL, /, **options: str) -> list[Part]:
        return planned(self.service, read_options({"log": log, **options}, "batch"), within)

    def read(self, parts: list[Part], *, ask_broker: bool = True) -> list[tuple[int, bytes]]:
        return [
            (row["position"], row["value"])
            for part in parts
            for batch in self.batches(part, ask_broker=ask_broker)
            for row in batch.to_pylist()
        ]

    def batches(self, part: Part, *, ask_broker: bool = True) -> Iterator:
        columns = ("position", "value")
        return read_part(part, columns, service=self.url, ask_broker=ask_broker)

    def expected(self, log: anabranch.Log, start: int = 0) -> list[tuple[int, bytes | None]]:
        return [(record.position, record.value) for record in log.read(start)]


@pytest.fixture
def reader(url: str, service: anabranch.Service) -> Reader:
    return Reader(url, service)


def fill(log: anabranch.Log, count: int, first: int = 0) -> None:
    """Each record by itself, so that there are many extents."""
    for nth in range(first, first + count):
        log.append(b"%d" % nth)


def test_a_scan_reads_what_a_client_reads(reader: Reader, log: anabranch.Log) -> None:
    fill(log, 12)
    for bytes_max in ("1", "150", "1g"):
        parts = reader.plan(log.name, partitionBytes=bytes_max)
        assert reader.read(parts) == reader.expected(log)
    assert len(reader.plan(log.name, minPartitions="5")) >= 5


def test_a_fork_is_read_with_what_it_inherits(reader: Reader, log: anabranch.Log) -> None:
    fill(log, 3)
    fork = log.cfork("what-if")
    fork.append(b"own")
    log.append(b"parent's")
    fork.append(b"own again")
    found = reader.read(reader.plan(fork.name))
    assert found == reader.expected(fork)
    assert len(found) == 6


def test_a_range_is_cut_by_options_and_filters(reader: Reader, log: anabranch.Log) -> None:
    log.append_many([b"%d" % nth for nth in range(20)])
    everything = reader.expected(log)
    assert reader.read(reader.plan(log.name, **{"from": "5", "to": "9"})) == everything[5:9]
    assert reader.read(reader.plan(log.name, **{"from": "latest"})) == []
    assert reader.read(reader.plan(log.name, Within(4, 7), to="6")) == everything[4:6]
    assert reader.read(reader.plan(log.name, Within(10**9, 10**10))) == []
    with pytest.raises(OutOfRange, match="21"):
        reader.plan(log.name, to="21")


def test_several_logs_are_read_one_after_the_other(
    reader: Reader, service: anabranch.Service, log: anabranch.Log
) -> None:
    other = service.create(f"{log.name}-b")
    fill(log, 2)
    fill(other, 3)
    parts = reader.plan(f"{log.name},{other.name}")
    assert {part.log for part in parts} == {log.name, other.name}
    assert reader.read(parts) == reader.expected(log) + reader.expected(other)


def test_a_plan_of_one_part_ends_with_its_task(
    reader: Reader, service: anabranch.Service, log: anabranch.Log
) -> None:
    fill(log, 3)
    parts = reader.plan(log.name)
    assert [plan.name for plan in service.plans().plans if plan.name == log.name] == [log.name]
    reader.read(parts)
    assert [plan.name for plan in service.plans().plans if plan.name == log.name] == []


def test_a_plan_that_has_ended_is_made_anew_by_the_task(
    reader: Reader,
    service: anabranch.Service,
    log: anabranch.Log,
    capsys: pytest.CaptureFixture[str],
) -> None:
    fill(log, 8)
    parts = reader.plan(log.name, partitionBytes="300")
    assert len(parts) > 1
    service.scan_plan(parts[0].plan).end()
    fill(log, 4, 8)
    assert reader.read(parts) == reader.expected(log)[:8]
    assert "planned-anew" in capsys.readouterr().err
    assert [plan.name for plan in service.plans().plans if plan.name == log.name] == []


def test_a_frame_that_is_read_twice_has_the_same_records(
    reader: Reader, log: anabranch.Log
) -> None:
    fill(log, 5)
    parts = reader.plan(log.name)
    first = reader.read(parts)
    fill(log, 2, 5)
    assert reader.read(parts) == first


def test_a_fork_that_is_promoted_midway_is_read_to_its_end(
    reader: Reader, service: anabranch.Service, log: anabranch.Log
) -> None:
    fill(log, 3)
    fork = log.cfork("better", promotable=True)
    fork.append(b"own")
    parts = reader.plan(fork.name, partitionBytes="1")
    expected = reader.expected(fork)
    fork.promote()
    assert reader.read(parts) == expected
    service.scan_plan(parts[0].plan).end()
    with pytest.raises(Promoted, match=log.name):
        reader.read(parts)


def test_speculative_records_are_not_read_once_they_have_moved(
    reader: Reader, service: anabranch.Service, log: anabranch.Log
) -> None:
    fill(log, 2)
    fork = log.cfork("maybe", promotable=True)
    fork.append(b"own")
    log.append(b"provisional")
    with pytest.raises(ReadBlocked, match="maybe"):
        reader.plan(log.name, to="3")
    assert len(reader.read(reader.plan(log.name))) == 2
    parts = reader.plan(log.name, speculative="true")
    assert [value for _, value in reader.read(parts)] == [b"0", b"1", b"provisional"]
    fork.promote()
    with pytest.raises(PlanOutdated, match="promotion"):
        reader.read(parts)


def test_records_that_were_trimmed_are_missed_loudly_or_by_request(
    reader: Reader, log: anabranch.Log, capsys: pytest.CaptureFixture[str]
) -> None:
    fill(log, 6)
    log.trim(4)
    with pytest.raises(OutOfRange, match="from 4 to"):
        reader.plan(log.name, **{"from": "1"})
    found = reader.read(reader.plan(log.name, **{"from": "1"}, onDataLoss="ignore"))
    assert found == reader.expected(log, 4)
    assert f"lost: records 1 to 3 of {log.name}" in capsys.readouterr().err
    assert reader.read(reader.plan(log.name)) == found


def objects(data: Path) -> list[Path]:
    return [path for path in (data / "objects").rglob("*") if path.is_file()]


def harm(path: Path) -> None:
    """Change the value of the last record that the object holds."""
    content = path.read_bytes()
    at = content.rindex(b"precious")
    path.write_bytes(content[:at] + b"PRECIOUS" + content[at + 8 :])


@pytest.mark.parametrize("how", ["damaged", "missing", "cut"])
def test_bytes_that_are_not_in_the_store_come_once_through_a_broker(
    own_service: Start, tmp_path: Path, how: str, capsys: pytest.CaptureFixture[str]
) -> None:
    _, url = own_service()
    with anabranch.connect(url) as service:
        log = service.create("orders")
        reader = Reader(url, service)
        log.append(b"precious")
        fill(log, 2)
        (place,) = [path for path in (tmp_path / "data").rglob("*") if _holds(path, b"precious")]
        spoil(place, how)
        parts = reader.plan("orders")
        # The broker has the records in its cache.
        assert [value for _, value in reader.read(parts)] == [b"precious", b"0", b"1"]
        said = capsys.readouterr().err
        assert said.count("asked-broker") == 1
        assert "records 0 to 0 of orders, object" in said
        with pytest.raises(RecordsDamaged, match="records 0 to 0 of log orders"):
            reader.read(reader.plan("orders"), ask_broker=False)
    _, url = own_service()
    with anabranch.connect(url) as service:
        reader = Reader(url, service)
        with pytest.raises(
            RecordsDamaged, match=r"records 0 to 0 of log orders.* object"
        ) as failed:
            reader.read(reader.plan("orders"))
        assert isinstance(failed.value.__cause__, AnabranchError)
        assert len(reader.read(reader.plan("orders", **{"from": "1"}))) == 2


def spoil(path: Path, how: str) -> None:
    match how:
        case "damaged":
            harm(path)
        case "missing":
            path.unlink()
        case _:
            content = path.read_bytes()
            path.write_bytes(content[: content.rindex(b"precious") + 2])


def _holds(path: Path, content: bytes) -> bool:
    return path.is_file() and "journal" not in str(path) and content in path.read_bytes()


@pytest.mark.nightly
def test_a_service_that_goes_away_fails_the_task_and_is_named(own_service: Start) -> None:
    process, url = own_service()
    with anabranch.connect(url) as service:
        log = service.create("orders")
        fill(log, 3)
        parts = Reader(url, service).plan("orders")
        process.end(signal.SIGKILL)
        with pytest.raises(AnabranchError, match=r"127\.0\.0\.1"):
            Reader(url, service).read(parts)


@pytest.fixture
def compacting(own_service: Start, monkeypatch: pytest.MonkeyPatch) -> Iterator[Reader]:
    """A service that copies 31 small extents together, and deletes garbage, as soon as it may: so
    30 lie in objects of their own until there are more.
    """
    for name, value in {
        "COMPACT_AGE_MS": "0",
        "COMPACT_EXTENTS_MIN": "31",
        "GRACE_MS": "0",
        "GC_INTERVAL_MS": "20",
    }.items():
        monkeypatch.setenv(f"ANABRANCH_{name}", value)
    _, url = own_service()
    with anabranch.connect(url) as service:
        yield Reader(url, service)


def test_compaction_and_collection_beside_a_scan_leave_it_whole(compacting: Reader) -> None:
    service = compacting.service
    log = service.create("orders")
    fill(log, 30)
    parts = compacting.plan("orders", minPartitions="3")
    expected = compacting.expected(log)
    fill(log, 30, 30)
    _until(lambda: service.plans().held_objects > 0)
    assert compacting.read(parts, ask_broker=False) == expected
    # Without its plan the objects go, and the task plans anew what lies elsewhere now.
    service.scan_plan(parts[0].plan).end()
    _until(lambda: service.survey().garbage_objects == 0)
    assert compacting.read(parts, ask_broker=False) == expected


def test_objects_that_go_under_a_task_with_their_plan_are_planned_anew_from_there(
    compacting: Reader, capsys: pytest.CaptureFixture[str]
) -> None:
    service = compacting.service
    log = service.create("orders")
    fill(log, 30)
    (part,) = compacting.plan("orders")
    assert len(part.slices) == 30, "most aren't fetched ahead"
    stretches = Scan(service, part, Wanted(), ask_broker=False).stretches()
    found = next(stretches)
    fill(log, 30, 30)
    _until(lambda: service.plans().held_objects > 0)
    service.scan_plan(part.plan).end()
    _until(lambda: service.survey().garbage_objects == 0)
    for more in stretches:
        found += more
    assert [value for each in found for value in each.values.to_pylist()] == [
        b"%d" % n for n in range(30)
    ]
    said = capsys.readouterr().err
    assert said.count("planned-anew") == 1
    assert "from 0 on" not in said


def _until(holds: Callable[[], bool]) -> None:
    pause = threading.Event()
    for _ in range(1_000):
        if holds():
            return
        pause.wait(0.02)
    raise AssertionError("it never came")


def test_a_store_that_refuses_its_own_urls_fails_the_task_and_no_broker_is_asked(
    reader: Reader,
    log: anabranch.Log,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    fill(log, 3)
    parts = reader.plan(log.name)
    asked: list[object] = []

    def refuse(_: Fetcher, place: object) -> bytes:
        asked.append(place)
        raise UrlRefused("the store refuses the signed URL (403)")

    monkeypatch.setattr(Fetcher, "_content", refuse)
    with pytest.raises(Unavailable, match=r"\(403\).*right to read"):
        reader.read(parts)
    assert len(asked) > 1, "a URL may have lapsed, so another one is signed"
    assert "asked-broker" not in capfd.readouterr().err
