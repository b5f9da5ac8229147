"""`make test-all`: run every test there is, and write down what came of it.

The whole suite first, then the tests on a real node. The last result is kept in the repository, so
that everybody can see when all of it was last seen to pass, and at which commit.
"""

import argparse
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

    date: str
    commit: str
    load: float
    """Of the machine, before it began."""
    passed: int
    failed: int
    skipped: dict[str, int]
    """Why, and how many."""
    seconds: float
    slowest: list[Slow]


class FullRun(msgspec.Struct, frozen=True, kw_only=True):
    cores: int
    suite: Part | None
    cluster: Part | None
    """The tests on a real node; None where nobody may bring one up."""


def part_of(report: Path, seconds: float, *, commit: str, load: float) -> Part:
    """What a JUnit report says."""
    cases = list(ET.parse(report).iter("testcase"))
    skips = [each.find("skipped") for each in cases]
    skipped = Counter(each.get("message", "") for each in skips if each is not None)
    failed = sum(
        each.find("failure") is not None or each.find("error") is not None for each in cases
    )
    timed = sorted(cases, key=_seconds, reverse=True)[:SLOWEST]
    return Part(
        date=dt.datetime.now(dt.UTC).date().isoformat(),
        commit=commit,
        load=round(load, 1),
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
    load, commit, began = os.getloadavg()[0], _commit(), time.monotonic()
    subprocess.run(command, cwd=ROOT, check=False)
    if not report.exists():
        sys.exit(f"the tests didn't run to their end: {' '.join(command)}")
    return part_of(report, time.monotonic() - began, commit=commit, load=load)


def _commit() -> str:
    """A plus stands for changes that aren't committed; the last result's file doesn't count."""
    result = f":!{RESULT.relative_to(ROOT)}"
    changed = _git("status", "--porcelain", "--untracked-files=no", "--", ".", result)
    return _git("rev-parse", "--short=12", "HEAD") + ("+" if changed else "")


def _git(*words: str) -> str:
    done = subprocess.run(("git", *words), cwd=ROOT, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def main(words: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=("suite", "cluster"), help="and leave the other's result")
    asked, options = parser.parse_known_args(words)
    last = _last()
    failed = 0
    with tempfile.TemporaryDirectory() as scratch:
        if asked.only != "cluster":
            suite = _suite(Path(scratch) / "suite.xml", options)
            # Kept even if the node's tests don't come to their end.
            last = msgspec.structs.replace(last, suite=suite)
            _write(last)
            print(summary("suite", suite), flush=True)  # noqa: T201
            failed += suite.failed
        if asked.only != "suite" and os.geteuid() == 0:
            report = Path(scratch) / "cluster.xml"
            cluster = _run(["make", "test-cluster", f"ARGS=--junitxml={report}"], report)
            _write(msgspec.structs.replace(last, cluster=cluster))
            print(summary("cluster", cluster))  # noqa: T201
            failed += cluster.failed
    return int(failed > 0)


def _suite(report: Path, options: Sequence[str]) -> Part:
    """`options` are pytest's."""
    told = [f"--junitxml={report}", "--ignore=tests/cluster", *options]
    return _run([sys.executable, "-m", "pytest", *told], report)


def _last() -> FullRun:
    if RESULT.exists():
        return msgspec.json.decode(RESULT.read_bytes(), type=FullRun)
    return FullRun(cores=os.cpu_count() or 1, suite=None, cluster=None)


def _write(result: FullRun) -> None:
    RESULT.write_bytes(msgspec.json.format(msgspec.json.encode(result), indent=2) + b"\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
