"""Seeds on the command line: run one again with its options, or many, and print what failed."""

import argparse
import sys
import time
from collections import Counter
from functools import partial
from hashlib import blake2b
from multiprocessing import Pool

from anabranch_sim.kinds import KINDS
from anabranch_sim.world.simulation import Report

_SHOWN = 5
"""Violations of one seed that are printed."""


class Digest:
    """A trace as one number, to compare two runs by."""

    def __init__(self) -> None:
        self._hash = blake2b(digest_size=16)
        self.lines = 0

    def __call__(self, line: str) -> None:
        self._hash.update(line.encode())
        self._hash.update(b"\n")
        self.lines += 1

    def __str__(self) -> str:
        return self._hash.hexdigest()


def main(arguments: list[str] | None = None) -> int:
    rest = list(sys.argv[1:] if arguments is None else arguments)
    kind = rest.pop(0) if rest and rest[0] in KINDS else "bolt"
    parser = argparse.ArgumentParser(
        prog=f"python -m anabranch_sim [{'|'.join(KINDS)}]",
        description="Simulate a whole deployment under faults.",
    )
    parser.add_argument("seed", nargs="?", type=int, help="run this seed")
    parser.add_argument("--seeds", type=int, help="run this many seeds")
    parser.add_argument("--from", type=int, default=0, dest="first", help="the first of them")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("-v", "--verbose", action="store_true", help="print the trace")
    parser.add_argument("--digest", action="store_true", help="print a hash of the trace")
    asked = parser.parse_args(rest)
    if asked.seeds is not None:
        return run_many(kind, asked.first, asked.seeds, asked.jobs)
    if asked.seed is None:
        parser.error("give a seed, or --seeds")
    digest = Digest()
    tell = print if asked.verbose else digest if asked.digest else None
    report = KINDS[kind].simulate(asked.seed, tell)
    print(described(kind, report))
    if asked.digest:
        print(f"trace {digest} of {digest.lines} lines")
    return int(report.failed)


def described(kind: str, report: Report) -> str:
    """All there is to say of one run, the way to run it again included."""
    counts = ", ".join(f"{count} {what}" for what, count in report.counts.items())
    lines = [report.options, counts]
    if report.failed:
        lines += [f"VIOLATION {violation}" for violation in report.violations[:_SHOWN]]
        if len(report.violations) > _SHOWN:
            lines.append(f"and {len(report.violations) - _SHOWN} more")
        lines.append(f"run it again with `make {KINDS[kind].verb} SEED={report.seed}`")
    text = "\n".join(f"{kind} seed {report.seed}: {line}" for line in lines)
    return f"{text}\n{report.crash}".rstrip()


def run_many(kind: str, first: int, count: int, jobs: int) -> int:
    """Every seed in turn; each that fails is printed at once, the count at the end."""
    began, failed, done = time.monotonic(), list[int](), Counter[str]()
    seeds = range(first, first + count)
    with Pool(jobs) as pool:
        for report in pool.imap_unordered(partial(_simulate, kind), seeds, chunksize=4):
            done[next(iter(report.counts))] += report.done
            if report.failed:
                failed.append(report.seed)
                print(described(kind, report), flush=True)
    amount = ", ".join(f"{number} {what}" for what, number in done.items())
    rate = f"{count / (time.monotonic() - began):.1f} seeds/s"
    print(f"{count} seeds of {kind}, {amount}, {rate}: {len(failed)} failed")
    if failed:
        print("failed:", *sorted(failed))
    return int(bool(failed))


def _simulate(kind: str, seed: int) -> Report:
    return KINDS[kind].simulate(seed)
