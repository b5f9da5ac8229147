"""The protocol broken by hand, one rule at a time: a simulator that misses one is not trusted.

Each mutant replaces one small named function of the cores. `python -m anabranch_sim.mutants` runs
seeds under each until one fails, and says how many that took and which check found it.
"""

import sys
import time
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any, cast

import msgspec

from anabranch_sim.belfast.mutants import SPECULATIONS
from anabranch_sim.belfast.simulation import Report as Foretold
from anabranch_sim.belfast.simulation import simulate as foretell
from anabranch_sim.bolt.group_mutants import MUTINIES
from anabranch_sim.bolt.mutants import BREAKAGES, Breakage
from anabranch_sim.bolt.simulation import Report, simulate
from anabranch_sim.kubernetes.mutants import MISRULES
from anabranch_sim.kubernetes.simulation import Report as Tended
from anabranch_sim.kubernetes.simulation import simulate as tend

SEEDS_MAX = 2000

Simulate = Callable[[int], Report | Tended | Foretold]


class Hunt(msgspec.Struct):
    """How a mutant was found, if it was."""

    mutant: str
    seeds: int
    seed: int | None = None
    found_by: str = ""
    seconds: float = 0.0


@contextmanager
def broken(breakage: Breakage) -> Generator[None]:
    """The cores with this rule broken, for a while."""
    with ExitStack() as repairs:
        each: Breakage | None = breakage
        while each is not None:
            repairs.callback(_break(each))
            each = each.also
        yield


def _break(breakage: Breakage) -> Callable[[], object]:
    """How to repair it."""
    owner, key = breakage.owner, breakage.key
    if isinstance(owner, dict):
        table = cast("dict[Any, Any]", owner)
        original = table[key]
        table[key] = breakage.instead(original)
        return partial(table.__setitem__, key, original)
    assert isinstance(key, str)
    original = owner.__dict__[key]
    setattr(owner, key, breakage.instead(original))
    return partial(setattr, owner, key, original)


def hunt(breakage: Breakage, seeds_max: int = SEEDS_MAX, simulate: Simulate = simulate) -> Hunt:
    began = time.monotonic()
    with broken(breakage):
        for seed in range(seeds_max):
            report = simulate(seed)
            if report.failed:
                took = time.monotonic() - began
                return Hunt(breakage.name, seed + 1, seed, _found_by(report), took)
    return Hunt(breakage.name, seeds_max, seconds=time.monotonic() - began)


def _found_by(report: Report | Tended | Foretold) -> str:
    first = report.violations[0]
    return first if len(first) <= 90 else f"{first[:87]}..."


def main() -> int:
    wanted = sys.argv[1:]
    survivors: list[str] = []
    print(f"{'mutant':42} {'seeds':>5} {'s':>6}  found by")
    hunts: list[tuple[Breakage, Simulate]] = [(each, simulate) for each in (*BREAKAGES, *MUTINIES)]
    hunts += [(each, tend) for each in MISRULES]
    hunts += [(each, foretell) for each in SPECULATIONS]
    for breakage, simulated in hunts:
        if wanted and breakage.name not in wanted:
            continue
        found = hunt(breakage, simulate=simulated)
        if found.seed is None:
            survivors.append(breakage.name)
        by = found.found_by or "NOTHING: it survived"
        print(f"{breakage.name:42} {found.seeds:5} {found.seconds:6.1f}  {by}", flush=True)
    if survivors:
        print("survived:", ", ".join(survivors))
    return int(bool(survivors))


if __name__ == "__main__":
    sys.exit(main())
