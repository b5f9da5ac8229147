"""Scans that last long beyond the grace of garbage, while their logs are compacted, trimmed and
squashed. The tasks' own code reads, without a JVM: what is slow is whoever takes the rows.

`python -m tests.spark.long_scan SECONDS` runs it for so long, on processes and an S3 server.
"""

import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event
from time import monotonic

import msgspec

import anabranch
from anabranch import Log, Service
from anabranch.apps.processes.cluster import LocalCluster
from anabranch.apps.processes.layout import Shape, settle
from anabranch.core.records.objects import ObjectName
from anabranch_spark.options import read_options
from anabranch_spark.source import columns
from anabranch_spark.source.parts import Part
from anabranch_spark.source.planning import planned
from anabranch_spark.source.reading import read_part

PATIENCE_S = 120.0
SETTINGS = {
    "grace_ms": 0,
    "gc_interval_ms": 100,
    "compact_extents_min": 4,
    "compact_age_ms": 60_000,
    "compact_span_ms": 60_000,
    "patience_ms": 60_000,
}
LEASE_S = 600
"""Longer than a machine that is busy may stop everything; it lies within `plan_lease_ms_max`."""
EXTENTS, RECORDS = 120, 20
"""Of each log when its scan is planned; each extent is an object of its own."""
PARTS, AT_ONCE = 4, 2
"""Of each scan, about, and how many of them at a time: others begin late, as where cores are few.
"""
LOAD_PAUSE_S = 0.2
LOAD_TURN = 25
"""In the middle of so many appends, a fork is made and squashed."""


class Tally(msgspec.Struct):
    """What a run has seen."""

    seconds: float = 0.0
    records: int = 0
    """Read by the scans."""
    appends: int = 0
    """Beside them."""
    squashed: int = 0
    """Forks, beside the one that was scanned."""
    held_most: int = 0
    """Objects of garbage that the plans held back."""
    objects: int = 0
    """That the scans' plans named."""
    gone: int = 0
    """Of them, those that were deleted when the plans had ended."""


class Run:
    """Three scans at a time: of a log that is compacted, of one that is trimmed, and of a fork
    that is squashed.
    """

    def __init__(self, service: Service, url: str, store: Path, seconds: float) -> None:
        self._service, self._url, self._store, self._seconds = service, url, store, seconds
        self.tally = Tally()
        self._over = Event()
        self._began = monotonic()

    def run(self) -> Tally:
        steady = self._filled(self._service.create("steady", timeout=PATIENCE_S))
        orders = self._filled(self._service.create("orders", timeout=PATIENCE_S))
        fork = self._filled(orders.cfork("what-if"))
        logs = [steady, orders, fork]
        scans = [self._planned(log) for log in logs]
        assert min(len(parts) for parts in scans) > AT_ONCE
        named = self._objects([part for parts in scans for part in parts])
        self.tally.objects = len(named)
        self._began = monotonic()
        with ThreadPoolExecutor(len(logs) * AT_ONCE + 1) as threads:
            load = threads.submit(self._load, steady, orders, fork)
            try:
                halves = [parts[n::AT_ONCE] for parts in scans for n in range(AT_ONCE)]
                self.tally.records = sum(threads.map(self._read, halves))
            finally:
                self._over.set()
            load.result()
        self.tally.seconds = monotonic() - self._began
        for part, *_ in scans:
            self._service.scan_plan(part.plan).end()
        self._wait(lambda: self._service.survey().garbage_objects == 0)
        self.tally.gone = len(named - self._stored())
        return self.tally

    def _filled(self, log: Log) -> Log:
        """Each record says in whose own range it lies, and at which position."""
        first = log.describe().tail
        for extent in range(EXTENTS):
            start = first + extent * RECORDS
            log.append_many(
                [b"%s %d" % (log.name.encode(), start + each) for each in range(RECORDS)],
                timeout=PATIENCE_S,
            )
        return log

    def _planned(self, log: Log) -> list[Part]:
        given = {"log": log.name, "minPartitions": str(PARTS), "planLease": f"{LEASE_S}s"}
        return planned(self._service, read_options(given, "batch"))

    def _read(self, parts: list[Part]) -> int:
        """As one core does: task by task, so slowly that the last ends when the run is to end."""
        count = sum(part.end - part.start for part in parts)
        for part in parts:
            self._read_part(part, self._seconds / count)
        return count

    def _read_part(self, part: Part, pause: float) -> None:
        """As a task does, for a consumer that takes rows slowly. Without help of a broker, so that
        an object that is missing ends it. `pause`: seconds for each record.
        """
        following = part.start
        batches = read_part(part, ("position", "value"), service=self._url, ask_broker=False)
        for batch in batches:
            for row in batch.to_pylist():
                assert row["position"] == following, part.name
                assert row["value"] == _meant(part.log, following), part.name
                following += 1
            self._over.wait(pause * batch.num_rows)
        assert following == part.end, part.name

    def _load(self, steady: Log, orders: Log, fork: Log) -> None:
        """Appends all the time; a third of the way in, all that is scanned of a log is trimmed, and
        the fork is squashed.
        """
        tally, turn, whole = self.tally, 0, True
        end = orders.describe().tail
        while not self._over.wait(LOAD_PAUSE_S):
            turn += 1
            for log in (steady, orders):
                log.append(b"later", timeout=PATIENCE_S)
                tally.appends += 1
            if turn % LOAD_TURN == 0:
                passing = steady.cfork(f"passing-{turn}")
                passing.append(b"own", timeout=PATIENCE_S)
                passing.squash()
                tally.squashed += 1
                tally.held_most = max(tally.held_most, self._service.plans().held_objects)
            if whole and monotonic() - self._began > self._seconds / 3:
                whole = False
                fork.squash()
                orders.trim(end)

    def _objects(self, parts: list[Part]) -> set[str]:
        """File names of what these parts are read from."""
        cluster = self._service.survey().cluster
        return {
            str(ObjectName.of(cluster, each.object)).rpartition("/")[2]
            for part in parts
            for each in part.slices
        }

    def _stored(self) -> set[str]:
        return {each.name for each in self._store.rglob("*") if each.is_file()}

    def _wait(self, until: Callable[[], bool]) -> None:
        deadline = monotonic() + PATIENCE_S
        while not until():
            assert monotonic() < deadline, self._service.survey()
            Event().wait(LOAD_PAUSE_S)


def _meant(log: str, position: int) -> bytes:
    """The record at a position. A fork has its parent's first."""
    own = EXTENTS * RECORDS
    parent = log.partition("--")[0]
    return b"%s %d" % ((parent if position < own else log).encode(), position)


def run(folder: Path, seconds: float) -> Tally:
    """Three scans of so many seconds on a new cluster."""
    with _cluster(folder) as url, anabranch.connect(url, timeout=PATIENCE_S) as service:
        # So that the scan stops after each slice, as it does after each 8 MiB of larger ones.
        rows, columns.ROWS_MAX = columns.ROWS_MAX, RECORDS
        try:
            return Run(service, url, folder / "s3", seconds).run()
        finally:
            columns.ROWS_MAX = rows


@contextmanager
def _cluster(folder: Path) -> Iterator[str]:
    layout = settle(folder, Shape(etcd=1, metadata=1, brokers=2))
    settings = {f"ANABRANCH_{name.upper()}": str(value) for name, value in SETTINGS.items()}
    cluster = LocalCluster(folder, layout, {"unsafe_no_fsync": "true"}, settings=settings)
    try:
        cluster.start(lambda _: None)
        yield layout.url
    finally:
        cluster.kill()


if __name__ == "__main__":
    with TemporaryDirectory() as scratch:
        sys.stdout.write(f"{run(Path(scratch) / 'cluster', float(sys.argv[1]))}\n")
