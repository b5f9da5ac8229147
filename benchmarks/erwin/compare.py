"""Two systems by turns, each on fresh processes in each round, and notes beside their figures."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from msgspec.structs import replace

from benchmarks.erwin.deployment import CORFU, ERWIN, Setting, running
from benchmarks.erwin.workload import Latencies, Load, measure
from benchmarks.report import Row, row, versus
from benchmarks.timing import interleaved

ROUNDS = 5
Rounds = dict[str, list[Latencies]]
"""Of each system."""


def systems(setting: Setting) -> dict[str, Setting]:
    return {name: replace(setting, system=name) for name in (ERWIN, CORFU)}


def rounds(count: int, chosen: Mapping[str, Setting], load: Load) -> Rounds:
    works = {name: partial(once, setting, load) for name, setting in chosen.items()}
    return interleaved(count, works)


def once(setting: Setting, load: Load) -> Latencies:
    with running(setting) as deployment:
        return measure(deployment, load)


def times_lower(
    what: str,
    found: Rounds,
    pick: Callable[[Latencies], float],
    *,
    at_least: float | None = None,
) -> Row:
    """How many times Erwin's figure Corfu's is."""
    ours, theirs = (list(map(pick, found[name])) for name in (ERWIN, CORFU))
    named = f"{what}: Corfu's over Erwin's"
    return versus(named, theirs, "ms", "Erwin's", ours, at_least=at_least)


def times_ours(
    what: str,
    found: Rounds,
    pick: Callable[[Latencies], float],
    *,
    at_most: float | None = None,
) -> Row:
    """How many times Corfu's figure Erwin's is."""
    ours, theirs = (list(map(pick, found[name])) for name in (ERWIN, CORFU))
    return versus(f"{what}: Erwin's over Corfu's", ours, "ms", "Corfu's", theirs, at_most=at_most)


def cores(what: str, found: Rounds) -> list[Row]:
    """That all processes of a log kept busy, without its clients."""
    return [
        row(f"{what}, {name}: cores", [_cores(each) for each in runs], "cores")
        for name, runs in found.items()
    ]


def notes(setting: Setting, load: Load, count: int) -> list[str]:
    where = (
        f"every message waits before it is handled, in the benchmark's transport, on both sides; "
        f"{setting.copies} replicas a shard, {setting.sequencers} sequencers of Erwin and one of "
        f"Corfu, each a process; durability {setting.durability} on both sides, unless it says more"
    )
    what = (
        f"records of {load.record_bytes} bytes, each a batch; closed loops of at most "
        f"{load.rate:g} appends/s, each with a connection to every node; two cores for all"
    )
    how = (
        f"{load.warm_s:g} s left out, {load.run_s:g} s measured; medians of {count} rounds, each "
        "on fresh processes, by turns"
    )
    return [where, what, how]


def _cores(each: Latencies) -> float:
    assert each.usage is not None, "the run is over"
    return each.usage.cores


def means(found: Rounds, name: str, pick: Callable[[Latencies], float]) -> Sequence[float]:
    return [pick(each) for each in found[name]]
