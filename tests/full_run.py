"""`make test-all`: run every test there is, and write down what came of it.

The whole suite first, then the tests on a real node. The last result is kept in the repository, so
that everybody can see when all of it was last seen to pass, and at which commit.
"""

import datetime as dt
import os
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import msgspec

ROOT = Path(__file__).resolve().parents[1]
RESULT = ROOT / "tests" / "last-full-run.json"
SLOWEST = 10


class Slow(msgspec.Struct, frozen=True):
    test: str
    seconds: float


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """One run of pytest."""

    passed: int
    failed: int
    skipped: dict[str, int]
    """Why, and how many."""
    seconds: float
    slowest: list[Slow]


class FullRun(msgspec.Struct, frozen=True, kw_only=True):
    date: str
    commit: str
    cores: int
    load: float
    """Of the machine, before it began."""
    suite: Part
    cluster: Part | None
    """The tests on a real node; None where nobody may bring one up."""


def part_of(report: Path, seconds: float) -> Part:
    """What a JUnit report says."""
    cases = list(ET.parse(report).iter("testcase"))
    skips = [each.find("skipped") for each in cases]
    skipped = Counter(each.get("message", "") for each in skips if each is not None)
    failed = sum(
        each.find("failure") is not None or each.find("error") is not None for each in cases
    )
    timed = sorted(cases, key=_seconds, reverse=True)[:SLOWEST]
    return Part(
        passed=len(cases) - failed - skipped.total(),
        failed=failed,
        skipped=dict(skipped.most_common()),
        seconds=round(seconds),
        slowest=[Slow(_name(each), _seconds(each)) for each in timed],
    )


def summary(name: str, part: Part) -> str:
    skipped = sum(part.skipped.values())
    counts = f"{part.passed} passed, {part.failed} failed, {skipped} skipped"
    return f"{name}: {counts} in {part.seconds / 60:.0f} min"


def _name(case: ET.Element) -> str:
    return f"{case.get('classname')}.{case.get('name')}"


def _seconds(case: ET.Element) -> float:
    return float(case.get("time", 0))


def _run(command: Sequence[str], report: Path) -> Part:
    began = time.monotonic()
    subprocess.run(command, cwd=ROOT, check=False)
    if not report.exists():
        sys.exit(f"the tests didn't run to their end: {' '.join(command)}")
    return part_of(report, time.monotonic() - began)


def _git(*words: str) -> str:
    done = subprocess.run(("git", *words), cwd=ROOT, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def main(options: Sequence[str]) -> int:
    """`options` are pytest's."""
    load = os.getloadavg()[0]
    changed = _git("status", "--porcelain", "--untracked-files=no")
    commit = _git("rev-parse", "--short=12", "HEAD") + ("+" if changed else "")
    with tempfile.TemporaryDirectory() as scratch:
        report = Path(scratch) / "suite.xml"
        told = [f"--junitxml={report}", "--ignore=tests/cluster", *options]
        suite = _run([sys.executable, "-m", "pytest", *told], report)
        result = FullRun(
            date=dt.datetime.now(dt.UTC).date().isoformat(),
            commit=commit,
            cores=os.cpu_count() or 1,
            load=round(load, 1),
            suite=suite,
            cluster=None,
        )
        # Kept even if the node's tests don't come to their end.
        _write(result)
        print(summary("suite", suite), flush=True)  # noqa: T201
        if os.geteuid() != 0:
            return int(suite.failed > 0)
        report = Path(scratch) / "cluster.xml"
        cluster = _run(["make", "test-cluster", f"ARGS=--junitxml={report}"], report)
    _write(msgspec.structs.replace(result, cluster=cluster))
    print(summary("cluster", cluster))  # noqa: T201
    return int(suite.failed + cluster.failed > 0)


def _write(result: FullRun) -> None:
    RESULT.write_bytes(msgspec.json.format(msgspec.json.encode(result), indent=2) + b"\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
