"""`python -m anabranch_sim.mutants [NAME...]`: is every mutant still found?

`known_seeds.json` has a seed for each at which it is found, which `--find` looks for anew.
"""

import argparse
import json
import sys
from collections.abc import Iterator
from functools import partial
from itertools import chain
from multiprocessing import Pool
from pathlib import Path

from anabranch_sim.kinds import KINDS, Kind
from anabranch_sim.world.mutants import Hunt, Mutant, StaleMutant, hunt

SEEDS_MAX = 2_000
"""A mutant that so many seeds don't find has survived."""

_KNOWN = Path(__file__).with_name("known_seeds.json")


def known_seeds() -> dict[str, dict[str, int]]:
    """Of each kind: by the mutant's name, a seed that finds it."""
    found: dict[str, dict[str, int]] = json.loads(_KNOWN.read_text())
    return found


def search(kind: Kind, mutant: Mutant, more: int) -> Hunt:
    """Try its known seed, and so many others after that."""
    known = known_seeds().get(kind.name, {}).get(mutant.name)
    seeds = chain(() if known is None else (known,), range(more))
    return hunt(mutant, seeds, kind.simulate)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m anabranch_sim.mutants")
    parser.add_argument("names", nargs="*", help="only these mutants")
    parser.add_argument("--find", action="store_true", help="write known_seeds.json anew")
    parser.add_argument("--seeds", type=int, default=SEEDS_MAX, help="try this many of each")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    asked = parser.parse_args()
    wanted = list(_wanted(asked.names))
    survivors: list[str] = []
    found = known_seeds()
    print(f"{'mutant':46} {'seed':>5} {'runs':>5} {'s':>6}  found by")
    with Pool(asked.jobs) as pool:
        for (kind, name), hunted in pool.imap(partial(_hunt, asked.seeds), wanted):
            if isinstance(hunted, Hunt) and hunted.passed and hunted.seed is not None:
                found.setdefault(kind, {})[name] = hunted.seed
            else:
                survivors.append(name)
            print(_row(name, hunted), flush=True)
            if asked.find:
                _write(found)
    if survivors:
        print("survived:", ", ".join(survivors))
    return int(bool(survivors))


def _write(found: dict[str, dict[str, int]]) -> None:
    """In the order of the mutants, and without those that are no more."""
    ordered = {
        kind.name: {
            mutant.name: seed
            for mutant in kind.mutants
            if (seed := found.get(kind.name, {}).get(mutant.name)) is not None
        }
        for kind in KINDS.values()
    }
    written = _KNOWN.with_suffix(".new")
    written.write_text(json.dumps(ordered, indent=2) + "\n")
    written.replace(_KNOWN)


def _wanted(names: list[str]) -> Iterator[tuple[str, str]]:
    for kind in KINDS.values():
        for mutant in kind.mutants:
            if not names or mutant.name in names:
                yield kind.name, mutant.name


def _hunt(seeds: int, wanted: tuple[str, str]) -> tuple[tuple[str, str], Hunt | str]:
    kind = KINDS[wanted[0]]
    mutant = next(each for each in kind.mutants if each.name == wanted[1])
    try:
        return wanted, search(kind, mutant, seeds)
    except StaleMutant as error:
        return wanted, str(error)


def _row(name: str, hunted: Hunt | str) -> str:
    if isinstance(hunted, str):
        return f"{name:46} STALE: {hunted}"
    by = hunted.found_by or "NOTHING: it survived"
    if hunted.unreached:
        by = f"NEVER CALLED: {', '.join(hunted.unreached)}; {by}"
    seed = "-" if hunted.seed is None else hunted.seed
    return f"{name:46} {seed:>5} {hunted.runs:5} {hunted.seconds:6.1f}  {by}"


if __name__ == "__main__":
    sys.exit(main())
