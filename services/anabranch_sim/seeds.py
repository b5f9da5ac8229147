"""Seeds on the command line: one again, with its options; or many, and which of them failed."""

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing import Pool
from typing import Generic, Protocol, TypeVar

from anabranch.core.errors import AnabranchError
from anabranch_sim.world.events import Digest


class Seeded(Protocol):
    """What a run was made from."""

    @property
    def seed(self) -> int: ...


class Report(Protocol):
    """What every kind of simulation tells of a run."""

    @property
    def options(self) -> Seeded: ...
    @property
    def violations(self) -> list[str]: ...
    @property
    def crash(self) -> str: ...
    @property
    def failed(self) -> bool: ...


R = TypeVar("R", bound=Report)

BUGS = (
    AnabranchError,
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
)
"""What a machine or a check raises when it is wrong: a finding like any other."""


@dataclass(frozen=True, slots=True)
class Kind(Generic[R]):
    """One kind of simulation."""

    program: str
    about: str | None
    simulate: Callable[..., R]
    """By a seed, and by whom the trace is told, if by anybody."""
    counts: Callable[[R], str]
    amount: Callable[[R], int]
    unit: str
    """What the amounts of many runs are of."""
    again: str
    """The command that runs one again."""

    def main(self) -> int:
        parser = argparse.ArgumentParser(prog=self.program, description=self.about)
        parser.add_argument("seed", nargs="?", type=int, help="run this one")
        parser.add_argument("--seeds", type=int, help="run so many")
        parser.add_argument("--from", type=int, default=0, dest="first", help="the first of them")
        parser.add_argument("--jobs", type=int, default=2, help="processes")
        parser.add_argument("-v", "--verbose", action="store_true", help="print the trace")
        parser.add_argument("--digest", action="store_true", help="print a hash of the trace")
        asked = parser.parse_args()
        if asked.seeds is not None:
            return self.run_many(asked.first, asked.seeds, asked.jobs)
        if asked.seed is None:
            parser.error("give a seed, or --seeds")
        digest = Digest()
        tell = print if asked.verbose else digest if asked.digest else None
        report = self.simulate(asked.seed, tell)
        print(self.told(report))
        if asked.digest:
            print(f"trace {digest} of {digest.lines} lines")
        return int(report.failed)

    def told(self, report: R) -> str:
        """All there is to say of one run, the way to run it again included."""
        seed = report.options.seed
        lines = [f"seed {seed}: {report.options}", f"seed {seed}: {self.counts(report)}"]
        if report.failed:
            lines += [f"seed {seed}: VIOLATION {violation}" for violation in report.violations[:5]]
            if len(report.violations) > 5:
                lines.append(f"seed {seed}: and {len(report.violations) - 5} more")
            lines += [report.crash.rstrip()] * bool(report.crash)
            lines.append(f"seed {seed}: run it again with `{self.again} SEED={seed}`")
        return "\n".join(lines)

    def run_many(self, first: int, count: int, jobs: int) -> int:
        """Every seed in turn; the failed ones are told at once, the count at the end."""
        began, failed, amount = time.monotonic(), list[int](), 0
        seeds = range(first, first + count)
        with Pool(jobs) as pool:
            for report in pool.imap_unordered(self.simulate, seeds, chunksize=4):
                amount += self.amount(report)
                if report.failed:
                    failed.append(report.options.seed)
                    print(self.told(report), flush=True)
        took = time.monotonic() - began
        rate = f"{count / took:.1f} seeds/s"
        print(f"{count} seeds, {amount} {self.unit}, {rate}: {len(failed)} failed")
        if failed:
            print("failed:", *sorted(failed))
        return int(bool(failed))
