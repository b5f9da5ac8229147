"""Kills drivers and Python workers of streaming queries, and compares the log with what was meant.

`python -m tests.spark.sink_campaign MODE KILLS SEED FILES SECONDS` runs one by hand: it kills until
there were so many kills, or for so long, and then lets the last stream come to its end.
"""

import os
import queue
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event, Thread
from time import monotonic

from tests.integration.cli_server import Server, bare

import anabranch
from anabranch.core.records.set_sum import UNKNOWN

HERE = Path(__file__).parent
LINES = 60
SILENCE_S = 600.0
"""A driver that says nothing for so long hangs."""
KILLS_A_BATCH = 3
"""More than Spark tries a task would make every batch fail."""
_EPOCH_MS = 1_700_000_000_000
_ENDED = "ended"


@dataclass
class Tally:
    """What a campaign has done."""

    drivers: int = 0
    workers: int = 0
    failures: int = 0
    """Queries that failed and were started again by their driver."""
    forgotten: int = 0
    """Last entries of the commit log that were deleted before a driver started."""
    rounds: int = 0
    seconds: float = 0.0

    @property
    def kills(self) -> int:
        return self.drivers + self.workers


def lines_of(file: int) -> list[str]:
    """Of different numbers, so that Spark has one order for the files of a batch; those of some
    files are so long that the log gets several batches of them.
    """
    pad = "x" * (12_000 if file % 5 == 0 else 10)
    first = _EPOCH_MS + file * LINES
    return [f"{first + line} key-{line} of {file} {pad}" for line in range(LINES - file % 7)]


def write_files(folder: Path, files: int) -> None:
    folder.mkdir(parents=True)
    for file in range(files):
        path = folder / f"{file:04}.txt"
        path.write_text("".join(line + "\n" for line in lines_of(file)))
        os.utime(path, (1_700_000_000 + file, 1_700_000_000 + file))


def append_meant(log: anabranch.Log, files: int) -> None:
    """As one writer would that nobody kills."""
    writer = log.writer("meant")
    for file in range(files):
        meant = [
            anabranch.Record(line.encode(), line.split()[1].encode(), (), int(line.split()[0]))
            for line in lines_of(file)
        ]
        writer.append(meant, version=file)


def check(service: anabranch.Service, log: str) -> None:
    """Count, set sum and every record are those that were meant; nothing is left undecided."""
    meant, found = (service.log(name, engine="bolt") for name in ("meant", log))
    assert found.describe().tail == meant.describe().tail
    sums = [each.set_sum() for each in (meant, found)]
    assert [each.unsummed for each in sums] == [[], []]
    assert sums[0].sum == sums[1].sum != UNKNOWN
    values = [sorted(record.value or b"" for record in each.read()) for each in (meant, found)]
    assert values[0] == values[1]
    assert found.describe().undecided is None


def forget_commit(checkpoint: Path) -> bool:
    """Delete the last entry of Spark's commit log, if it has one."""
    entries = [int(each.name) for each in (checkpoint / "commits").glob("[0-9]*")]
    if not entries:
        return False
    (checkpoint / "commits" / str(max(entries))).unlink()
    (checkpoint / "commits" / f".{max(entries)}.crc").unlink(missing_ok=True)
    return True


class Driver:
    """A process of `sink_query`, and what it says."""

    def __init__(self, folder: Path, *words: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, str(HERE / "sink_query.py"), str(folder), *words],
            env=bare(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._said: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._last: list[str] = []
        self._threads = [
            Thread(target=self._listen, daemon=True),
            Thread(target=self._collect, daemon=True),
        ]
        for thread in self._threads:
            thread.start()

    def hear(self, seconds: float = SILENCE_S) -> str:
        """The next line, or that it has ended; queue.Empty if neither comes in time."""
        return self._said.get(timeout=seconds)

    def kill(self) -> None:
        """The program and its JVM; Python workers outlive them for a moment."""
        for process in [*_javas(self._process.pid), self._process.pid]:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)

    def kill_worker(self, chance: random.Random) -> bool:
        """One of the Python workers, if there are any."""
        workers = [*_workers(self._process.pid)]
        if not workers:
            return False
        with suppress(ProcessLookupError):
            os.kill(chance.choice(workers), signal.SIGKILL)
        return True

    def ended(self) -> int:
        """Its exit code."""
        code = self._process.wait(SILENCE_S)
        for thread in self._threads:
            thread.join(SILENCE_S)
        return code

    @property
    def complaint(self) -> str:
        return "".join(self._last[-200:])

    def _listen(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as lines:
            for line in lines:
                self._said.put(line.strip())
        self._said.put(_ENDED)

    def _collect(self) -> None:
        assert self._process.stderr is not None
        with self._process.stderr as lines:
            self._last.extend(lines)


def _children() -> dict[int, list[int]]:
    """Of every process of this machine, by parent."""
    found: dict[int, list[int]] = {}
    for status in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            after = status.read_text().rpartition(")")[2].split()
            found.setdefault(int(after[1]), []).append(int(status.parent.name))
    return found


def _words(process: int) -> str:
    with suppress(OSError):
        return Path(f"/proc/{process}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    return ""


def _javas(driver: int) -> Iterator[int]:
    """The JVM, which a shell script has become or has as its child."""
    children = _children()
    waiting = [driver]
    while waiting:
        for child in children.get(waiting.pop(), []):
            waiting.append(child)
            if "org.apache.spark" in _words(child):
                yield child


def _workers(driver: int) -> Iterator[int]:
    """Children of the daemons that the JVM has: they run tasks, plan writes, and commit."""
    children = _children()
    for java in _javas(driver):
        for daemon in children.get(java, []):
            if "pyspark.daemon" in _words(daemon):
                yield from children.get(daemon, [])


@contextmanager
def driving(folder: Path, *words: str) -> Iterator[Driver]:
    driver = Driver(folder, *words)
    try:
        yield driver
    finally:
        driver.kill()
        driver.ended()


class Campaign:
    """Queries of one mode, one after the other, until there were enough kills."""

    def __init__(self, folder: Path, mode: str, *, kills: int, files: int, seed: int) -> None:
        self._folder, self._mode, self._wanted, self._files = folder, mode, kills, files
        self._chance = random.Random(seed)
        self._kills_end = 0.0
        self.tally = Tally()

    def run(self, url: str, within_s: float) -> Tally:
        begun = monotonic()
        self._kills_end = begun + within_s
        with anabranch.connect(url) as service:
            append_meant(service.ensure("meant"), self._files)
            while not self._enough():
                self.tally.rounds += 1
                log = f"kills-{self._mode}-{self.tally.rounds}"
                service.create(log)
                self._round(url, log)
                check(service, log)
        self.tally.seconds = round(monotonic() - begun, 1)
        return self.tally

    def _enough(self) -> bool:
        return self.tally.kills >= self._wanted or monotonic() > self._kills_end

    def _round(self, url: str, log: str) -> None:
        """One stream, from its first file to its last, through as many drivers as it takes."""
        folder = self._folder / log
        write_files(folder / "files", self._files)
        while True:
            if self._chance.random() < 0.5 and forget_commit(folder / "checkpoint"):
                self.tally.forgotten += 1
            with driving(folder, url, log, self._mode) as driver:
                if self._drive(driver):
                    code = driver.ended()
                    assert code == 0, driver.complaint
                    return

    def _drive(self, driver: Driver) -> bool:
        """Whether the driver has ended by itself; else it was killed."""
        patience = self._chance.randint(1, 6)
        heard = driver.hear()
        while heard != _ENDED:
            self.tally.failures += heard == "failed"
            patience -= heard != "ready"
            if heard != "ready" and not self._enough():
                Event().wait(self._chance.uniform(0, 0.8))
                if patience <= 0 and self._chance.random() < 0.4:
                    driver.kill()
                    self.tally.drivers += 1
                    return False
                self.tally.workers += driver.kill_worker(self._chance)
            # A query that has failed gets farther now, or it would come to no batch.
            kills = KILLS_A_BATCH if heard.startswith("batch") else 0
            heard = self._kill_until_heard(driver, kills)
        return True

    def _kill_until_heard(self, driver: Driver, kills: int) -> str:
        """The driver's next word. A batch takes seconds, so several workers are killed in it."""
        while kills > 0 and not self._enough():
            with suppress(queue.Empty):
                return driver.hear(self._chance.uniform(0.1, 2.0))
            kills -= 1
            self.tally.workers += driver.kill_worker(self._chance)
        return driver.hear()


def main(mode: str, kills: str, seed: str, files: str, seconds: str) -> None:
    with TemporaryDirectory() as name:
        folder = Path(name)
        with Server.started(folder) as server:
            campaign = Campaign(folder, mode, kills=int(kills), files=int(files), seed=int(seed))
            try:
                campaign.run(server.url, float(seconds))
            finally:
                sys.stdout.write(f"{campaign.tally}\n")


if __name__ == "__main__":
    main(*sys.argv[1:6])
