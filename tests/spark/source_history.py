"""A source under everything that happens to a log, and a check of what it reads.

`python -m tests.spark.source_history STEPS SEED` appends, forks, promotes, squashes and trims, on a
service that compacts and deletes at once, while streams and scans read: they are restarted, they
repeat micro-batches, and their plans end under them. Compared is with what a client reads.

It knows of the source what `docs/howto/spark.md` and `docs/reference/spark.md` promise, and calls
it as Spark does.
"""

import json
import os
import pickle
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from signal import SIGKILL
from threading import Event
from time import monotonic
from typing import Any
from unittest.mock import patch

import pyarrow as pa
from pyspark.cloudpickle import dumps
from pyspark.sql.datasource import CaseInsensitiveDict
from pyspark.sql.types import BinaryType, LongType, StructField, StructType
from tests.integration.server_process import Process

import anabranch
from anabranch.errors import AnabranchError, AppendBlocked, ForkBlocked, TooMany
from anabranch_spark.source.datasource import AnabranchDataSource

SCHEMA = StructType([StructField("position", LongType()), StructField("value", BinaryType())])
LIMITS = {
    "COMPACT_AGE_MS": "0",
    "COMPACT_EXTENTS_MIN": "4",
    "GRACE_MS": "0",
    "GC_INTERVAL_MS": "20",
}
PATIENCE_S = 60.0
LEASE_S = 60
"""Of most scans."""
Found = list[tuple[int, bytes]]


@dataclass
class Tally:
    appended: int = 0
    steps: Counter[str] = field(default_factory=Counter[str])
    micro_batches: int = 0
    repeated: int = 0
    restarts: int = 0
    compared: int = 0
    """Records that were read and compared."""
    scans: int = 0
    ends: Counter[str] = field(default_factory=Counter[str])
    """What ended a query, or a scan, by its code."""


@contextmanager
def eager_service() -> Iterator[str]:
    """One that compacts and deletes at once."""
    environment = {f"ANABRANCH_{name}": value for name, value in LIMITS.items()}
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "data"
        data.mkdir()
        with patch.dict(os.environ, environment):
            process = Process(data)
        try:
            yield f"anabranch://127.0.0.1:{process.port}"
        finally:
            process.end(SIGKILL)


def source(url: str, log: str, **options: str) -> AnabranchDataSource:
    given = {"service": url, "log": log, "columns": "position,value", **options}
    made = AnabranchDataSource(CaseInsensitiveDict(given))  # type: ignore[arg-type]
    return pickle.loads(dumps(made))


def rows_of(reader: Any, partitions: Any) -> Found:
    """As tasks read them, each from what was pickled for it."""
    return [row for partition in partitions for row in rows_of_part(reader, partition)]


def rows_of_part(reader: Any, partition: Any) -> Found:
    task, given = pickle.loads(dumps((reader, partition)))
    found: Found = []
    for batch in task.read(given):
        assert isinstance(batch, pa.RecordBatch)
        found += [(row["position"], row["value"]) for row in batch.to_pylist()]
    return found


@dataclass
class Stream:
    """A query over one log: what its checkpoint holds, and what it has read."""

    url: str
    log: str
    options: dict[str, str]
    chance: random.Random
    tally: Tally
    reader: Any = field(default=None)
    last: Any = None
    """The offset up to which all is read."""
    before: Any = None
    read: dict[int, bytes] = field(default_factory=dict[int, bytes])
    ended: str = ""

    def start(self) -> None:
        """A driver starts, or starts again."""
        self.tally.restarts += 1
        if self.reader is not None and self.chance.random() < 0.5:
            self.reader.stop()
        self.reader = source(self.url, self.log, **self.options).streamReader(SCHEMA)
        if self.last is None:
            self.last = _json(self.reader.initialOffset())
        else:
            # Spark 4.1 tells a reader so where it stands.
            self.reader.partitions(self.last, self.last)

    def step(self, service: anabranch.Service) -> int:
        """A micro-batch, if there is anything to read: how many records."""
        if self.reader is None or self.chance.random() < 0.15:
            self.start()
        reader: Any = self.reader
        end = _json(reader.latestOffset())
        settled = service.log(self.log, engine="bolt").describe().settled
        assert end["position"] <= settled, f"{end} passes what is settled, {settled}"
        assert end["position"] >= self.last["position"], f"{end} is behind {self.last}"
        if end == self.last:
            return 0
        found = self._range(self.last, end)
        lost = end["position"] - self.last["position"] - len(found)
        there = service.log(self.log, engine="bolt").describe()
        assert not lost or there.start >= self.last["position"] + lost, f"{lost} of {end} are lost"
        while self.chance.random() < 0.25:
            self.tally.repeated += 1
            if self.chance.random() < 0.5:
                self.start()
            again = self._range(self.last, end)
            kept = found[len(found) - len(again) :] if self._may_lose else found
            assert again == kept, "a repeated micro-batch has other records"
        self._limits(found, service)
        self.read.update(found)
        if self.before is not None and self.chance.random() < 0.8:
            reader = self.reader
            reader.commit(self.before)
        self.before = self.last = end
        self.tally.micro_batches += 1
        return len(found)

    def _range(self, start: Any, end: Any) -> Found:
        partitions = self.reader.partitions(start, end)
        # Spark makes another reader for the tasks.
        tasks = source(self.url, self.log, **self.options).streamReader(SCHEMA)
        found = rows_of(tasks, partitions)
        first = start["position"]
        if self._may_lose:
            first = max(first, end["position"] - len(found))
        assert [position for position, _ in found] == [*range(first, end["position"])]
        return found

    @property
    def _may_lose(self) -> bool:
        return self.options.get("onDataLoss") == "ignore"

    def _limits(self, found: Found, service: anabranch.Service) -> None:
        records = self.options.get("maxRecordsPerTrigger")
        assert records is None or len(found) <= int(records), f"{len(found)}, {records} allowed"
        size = self.options.get("maxBytesPerTrigger")
        if size is not None and found:
            log = service.log(self.log, engine="bolt")
            with log.plan_scan(found[0][0], found[-1][0] + 1) as plan:
                lengths = [each.length for page in plan.pages() for each in page]
            # Compaction since then may have made one slice of several, and never the reverse.
            assert len(lengths) == 1 or sum(lengths) <= int(size), f"{lengths}, {size} allowed"


def _json(offset: Any) -> Any:
    return json.loads(json.dumps(offset))


class World:
    """A parent, its forks, and streams that read them."""

    def __init__(self, url: str, service: anabranch.Service, seed: int, tally: Tally) -> None:
        self.url, self.service, self.tally = url, service, tally
        self.chance = random.Random(seed)
        self.parent = service.create(f"parent-{seed}")
        self.logs = {self.parent.name: self.parent}
        self.promotable: set[str] = set()
        self.streams: list[Stream] = []
        self.scans: list[Scan] = []
        self._count = 0

    def play(self, steps: int) -> None:
        actions = [
            (self.append, 8),
            (self.stream, 10),
            (self.scan, 4),
            (self.finish_scan, 4),
            (self.fork, 2),
            (self.fork_promotable, 1),
            (self.decide, 2),
            (self.trim, 1),
            (self.new_stream, 1),
            (self.end_plans, 1),
        ]
        for _ in range(steps):
            (action,) = self.chance.choices(*zip(*actions, strict=True))
            self.tally.steps[action.__name__] += 1
            action()
        while self.promotable:
            self.decide()
        while self.scans:
            self.finish_scan()
        for stream in self.streams:
            self._to_the_end(stream)

    def append(self) -> None:
        log = self.chance.choice([*self.logs.values()])
        values = []
        for _ in range(self.chance.choice((1, 1, 2, 5, 30))):
            self._count += 1
            pad = b"x" * self.chance.choice((0, 0, 0, 2_000))
            values.append(b"%d of %s %s" % (self._count, log.name.encode(), pad))
        with suppress(AppendBlocked):
            if self.chance.random() < 0.5:
                log.append_many(values, timeout=2)
            else:
                for value in values[:6]:
                    log.append(value, timeout=2)
        self.tally.appended += len(values)

    def fork(self) -> None:
        with suppress(ForkBlocked):
            self._add(self.chance.choice([*self.logs.values()]).cfork(self._name()))

    def fork_promotable(self) -> None:
        with suppress(ForkBlocked):
            fork = self.chance.choice([*self.logs.values()]).cfork(self._name(), promotable=True)
            self.promotable.add(fork.name)
            self._add(fork)

    def _name(self) -> str:
        self._count += 1
        return f"f{self._count}"

    def _add(self, log: anabranch.Log) -> None:
        self.logs[log.name] = log
        if self.chance.random() < 0.5:
            self._new_stream(log.name)

    def decide(self) -> None:
        """Promote or squash a promotable fork."""
        if not self.promotable:
            return
        name = self.chance.choice(sorted(self.promotable))
        log = self.logs[name]
        with suppress(AnabranchError):
            if self.chance.random() < 0.6:
                log.promote()
            else:
                log.squash()
        for each in [*self.logs]:
            try:
                self.logs[each].describe()
            except AnabranchError as gone:
                self.tally.steps[f"gone {gone.code}"] += 1
                del self.logs[each]
                self.promotable.discard(each)

    def trim(self) -> None:
        """Also beyond what a stream has read. What a promotable fork adds can't be trimmed."""
        log = self.logs[self.chance.choice(sorted({*self.logs} - self.promotable))]
        there = log.describe()
        if there.settled > there.start and self.chance.random() < 0.5:
            log.trim(self.chance.randint(there.start, there.settled))

    def new_stream(self) -> None:
        self._new_stream(self.chance.choice([*self.logs]))

    def _new_stream(self, log: str) -> None:
        options = {"planLease": self.chance.choice(("1s", "10s"))}
        if self.chance.random() < 0.6:
            options["maxRecordsPerTrigger"] = str(self.chance.choice((1, 3, 10, 50)))
        if self.chance.random() < 0.3:
            options["onDataLoss"] = "ignore"
        if self.chance.random() < 0.3:
            options["maxBytesPerTrigger"] = str(self.chance.choice((1, 500, 5_000)))
        if self.chance.random() < 0.3:
            options["minPartitions"] = str(self.chance.choice((2, 5)))
        if self.chance.random() < 0.3:
            options["partitionBytes"] = str(self.chance.choice((1, 300)))
        self.streams.append(Stream(self.url, log, options, self.chance, self.tally))

    def stream(self) -> None:
        alive = [each for each in self.streams if not each.ended]
        if alive:
            self._step(self.chance.choice(alive))

    def _step(self, stream: Stream) -> int:
        try:
            return stream.step(self.service)
        except AnabranchError as end:
            self._ended(stream, end)
            return 0

    def _ended(self, stream: Stream, end: AnabranchError) -> None:
        """Only these may end a query, and only where they are so."""
        stream.ended = end.code
        self.tally.ends[f"stream {end.code}"] += 1
        if end.code in ("promoted", "squashed"):
            assert stream.log not in self.logs
        elif end.code == "out-of-range":
            at = stream.last["position"] if stream.last else 0
            assert stream.options.get("onDataLoss") != "ignore", end
            assert self.logs[stream.log].describe().start > at, end
        else:
            raise end

    def _to_the_end(self, stream: Stream) -> None:
        """It comes to what is settled; and all of it is what a client reads."""
        while not stream.ended and (self._step(stream) or not self._at_end(stream)):
            pass
        if stream.log not in self.logs:
            return
        log = self.logs[stream.log]
        for record in log.read(log.describe().start):
            if record.position in stream.read:
                assert stream.read[record.position] == record.value
                self.tally.compared += 1

    def _at_end(self, stream: Stream) -> bool:
        return stream.ended != "" or (
            stream.last["position"] == self.logs[stream.log].describe().settled
        )

    def scan(self) -> None:
        if len(self.scans) < 4:
            name = self.chance.choice([*self.logs])
            lease = self.chance.choice((f"{LEASE_S}s", f"{LEASE_S}s", "1s"))
            options = {"planLease": lease, "partitionBytes": self.chance.choice(("1", "1k", "1m"))}
            log = self.logs[name]
            before = log.describe()
            expected = [(each.position, each.value or b"") for each in log.read(before.start)]
            try:
                reader = source(self.url, name, **options).reader(SCHEMA)
                partitions = [*reader.partitions()]
            except TooMany:
                return
            kept = monotonic() + (LEASE_S / 2 if lease != "1s" else 0)
            self.scans.append(Scan(name, before.start, expected, reader, partitions, kept))

    def finish_scan(self) -> None:
        """Long after it was planned."""
        if not self.scans:
            return
        scan = self.scans.pop(self.chance.randrange(len(self.scans)))
        self.chance.shuffle(scan.partitions)
        self.tally.scans += 1
        found: Found = []
        try:
            found = sorted(rows_of(scan.reader, scan.partitions))
        except AnabranchError as end:
            # What was planned stays there for as long as its plan lives, whatever becomes of the
            # log.
            if monotonic() < scan.kept:
                raise
            self.tally.ends[f"scan {end.code}"] += 1
            if end.code in ("promoted", "squashed"):
                assert scan.log not in self.logs
                return
            if end.code == "out-of-range":
                assert self.logs[scan.log].describe().start > scan.start
                return
            raise
        assert found[: len(scan.expected)] == scan.expected, f"of {scan.log}"
        assert [position for position, _ in found] == [*range(scan.start, scan.start + len(found))]
        self.tally.compared += len(found)

    def end_plans(self) -> None:
        """As if they had lapsed, or were too old."""
        for scan in self.scans:
            scan.kept = 0.0
        for plan in self.service.plans().plans:
            if self.chance.random() < 0.5:
                with suppress(AnabranchError):
                    self.service.scan_plan(plan).end()
        Event().wait(0.1)


@dataclass
class Scan:
    """One that is planned, and not read yet."""

    log: str
    start: int
    expected: Found
    reader: Any
    partitions: list[Any]
    kept: float
    """Its plan lives until then at least."""


def play(steps: int, seed: int, each: int = 300) -> Tally:
    tally = Tally()
    with eager_service() as url, anabranch.connect(url, timeout=PATIENCE_S) as service:
        for nth in range(-(-steps // each)):
            World(url, service, seed * 1_000 + nth, tally).play(each)
            sys.stdout.write(f"{nth}: {tally}\n")
            sys.stdout.flush()
    return tally


if __name__ == "__main__":
    play(int(sys.argv[1]), int(sys.argv[2]))
