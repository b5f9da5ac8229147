"""`python -m benchmarks [NAME...]`: run these, or all, and say which rows don't hold."""

import argparse
import signal
import sys
from importlib import import_module
from pathlib import Path

from benchmarks.machine import commit, describe
from benchmarks.plots import draw
from benchmarks.report import RESULTS, SCRATCH, Found, Result, Row, said, save
from benchmarks.size import Size

NAMES = (
    "fork",
    "fork-client",
    "appends-with-forks",
    "memory",
    "lookup",
    "promote",
    "state-machine",
    "append-frames",
    "append-http",
    "read",
    "compaction",
    "import-time",
    "s3-client",
    "lazy-front",
)
"""Each is a module of this package, with `run(size)`."""

CLUSTER = (
    "fork-cluster",
    "append-s3",
    "takeover",
    "tail-readers",
    "etcd-load",
    "isolation",
    "forks-and-roots",
    "promote-cluster",
    "broker-throughput",
)
"""Of `benchmarks.cluster`: each starts a cluster of processes."""

OPERATOR = ("api-client", "declared", "succession")
"""Of `benchmarks.operator`: each starts an API server."""

BELFAST = (
    "delivery",
    "compute",
    "append-latency",
    "burst",
    "rate-change",
    "window",
    "elasticity",
    "scaling",
    "sequencer",
    "straggler",
    "applications",
    "failures",
    "interval",
)
"""Of `benchmarks.belfast`: figures of its paper, each on processes of a log."""

ERWIN = (
    "erwin-append",
    "erwin-scalog",
    "erwin-reads",
    "erwin-periodic-reads",
    "erwin-append-rate",
    "erwin-record-size",
    "erwin-scaling",
    "erwin-sequencing",
    "erwin-st-reads",
    "erwin-new-shard",
    "erwin-reconfiguration",
    "erwin-kafka",
    "erwin-applications",
)
"""Of `benchmarks.erwin`: figures of its paper, each on processes of a log."""

SPARK = ("spark-read", "spark-kafka", "spark-plan", "spark-backfill", "spark-gate")
"""Modules of `benchmarks.spark`; each starts a Spark session or job, or plans a scan for one."""

ALL = (*NAMES, *CLUSTER, *OPERATOR, *BELFAST, *ERWIN, *SPARK)


_PREFIXED = ("erwin", "spark")
"""Packages whose benchmarks bear their name."""


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(ALL))
    parser.add_argument("--smoke", action="store_true", help="tiny: only to see that they run")
    parser.add_argument("--out", type=Path, help="where results are written")
    asked = parser.parse_args(words)
    unknown = [name for name in asked.names if name not in ALL]
    if unknown:
        parser.error(f"there is no benchmark {unknown[0]}: choose from {', '.join(ALL)}")
    out = asked.out or (SCRATCH if asked.smoke else RESULTS)
    missed: list[tuple[str, Row]] = []
    for name in asked.names or ALL:
        result = measure(name, Size(asked.smoke), out)
        missed += ((name, row) for row in result.rows if row.holds is False)
    if asked.smoke:
        return 0
    print(f"\n{len(missed)} rows don't hold" if missed else "\nevery bar holds")
    for name, row in missed:
        print(f"{name}:\n{said(row)}")
    return 0


def measure(name: str, size: Size, out: Path) -> Result:
    """Run one, in this process, and write what it found."""
    SCRATCH.mkdir(exist_ok=True)
    machine = describe(SCRATCH)
    speed = f"fdatasync {machine.fdatasync_us_p50:g} us, loop {machine.loop_ns:g} ns"
    print(f"{name}  (load {machine.load}, {speed})", flush=True)
    found: Found = import_module(_module(name)).run(size)
    rows = [row for row in found.rows if row.known]
    unknown = [f"nothing was there to measure: {row.what}" for row in found.rows if not row.known]
    notes = [*found.notes, *unknown]
    result = Result(name=name, machine=machine, commit=commit(), rows=rows, notes=notes)
    save(result, out)
    draw(found.charts, out / name)
    for row in rows:
        print(said(row), flush=True)
    for note in notes:
        print(f"  ({note})", flush=True)
    return result


def _module(name: str) -> str:
    packages = (("cluster", CLUSTER), ("operator", OPERATOR), ("belfast", BELFAST))
    for package, names in packages:
        if name in names:
            return f"benchmarks.{package}.{name.replace('-', '_')}"
    for package in _PREFIXED:
        if name.startswith(f"{package}-"):
            return f"benchmarks.{package}.{name.removeprefix(f'{package}-').replace('-', '_')}"
    return f"benchmarks.{name.replace('-', '_')}"


if __name__ == "__main__":
    # So that what a benchmark has started ends with it.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    sys.exit(main(sys.argv[1:]))
