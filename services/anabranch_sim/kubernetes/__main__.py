"""`python -m anabranch_sim.kubernetes SEED`: one seed of operators again; `--seeds N`: many."""

import argparse
import sys
import time
from multiprocessing import Pool

from anabranch_sim.kubernetes.simulation import Report, simulate
from anabranch_sim.world import Digest


def main() -> int:
    parser = argparse.ArgumentParser(prog="anabranch_sim.kubernetes", description=__doc__)
    parser.add_argument("seed", nargs="?", type=int, help="run this one")
    parser.add_argument("--seeds", type=int, help="run so many")
    parser.add_argument("--from", type=int, default=0, dest="first", help="the first of them")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("-v", "--verbose", action="store_true", help="print the trace")
    parser.add_argument("--digest", action="store_true", help="print a hash of the trace")
    asked = parser.parse_args()
    if asked.seeds is not None:
        return run_many(asked.first, asked.seeds, asked.jobs)
    if asked.seed is None:
        parser.error("give a seed, or --seeds")
    digest = Digest()
    tell = print if asked.verbose else digest if asked.digest else None
    report = simulate(asked.seed, tell)
    print(told(report))
    if asked.digest:
        print(f"trace {digest} of {digest.lines} lines")
    return int(report.failed)


def told(report: Report) -> str:
    """All there is to say of one run, the way to run it again included."""
    seed = report.options.seed
    counts = f"{report.acts} acts, {report.writes} writes, {report.strikes} strikes"
    lines = [f"seed {seed}: {report.options}", f"seed {seed}: {counts}, {report.events} events"]
    if report.failed:
        lines += [f"seed {seed}: VIOLATION {violation}" for violation in report.violations[:5]]
        if len(report.violations) > 5:
            lines.append(f"seed {seed}: and {len(report.violations) - 5} more")
        lines += [report.crash.rstrip()] * bool(report.crash)
        lines.append(f"seed {seed}: run it again with `make simulate-operator SEED={seed}`")
    return "\n".join(lines)


def run_many(first: int, count: int, jobs: int) -> int:
    """Every seed in turn; the failed ones are told at once, the count at the end."""
    began, failed, writes = time.monotonic(), list[int](), 0
    with Pool(jobs) as pool:
        for report in pool.imap_unordered(simulate, range(first, first + count), chunksize=4):
            writes += report.writes
            if report.failed:
                failed.append(report.options.seed)
                print(told(report), flush=True)
    took = time.monotonic() - began
    print(f"{count} seeds, {writes} writes, {count / took:.1f} seeds/s: {len(failed)} failed")
    if failed:
        print("failed:", *sorted(failed))
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
