"""How many extents a second the state machine commits, on one core."""

import gc
from collections.abc import Callable

import msgspec

from anabranch.core.bolt.protocol.commands import Entry, decode_group
from benchmarks.replicas import Replica, objects_of_many_logs
from benchmarks.report import Chart, Found, Line, row
from benchmarks.size import Size
from benchmarks.timing import busy_seconds, interleaved

LOGS = 64
"""In each object: one batch, and so one extent, of each."""


def run(size: Size) -> Found:
    objects, rounds = size.of((2_000, 11), (10, 2))
    works = {
        "without producers": _applied(objects, producers=False),
        "with producers, once-only": _applied(objects, producers=True),
        "from the journal's bytes, with producers": _replayed(objects),
    }
    found = interleaved(rounds, works)
    rows = [
        row(f"extents/s, {LOGS} logs an object, {name}", rates, "1/s", at_least=300_000)
        for name, rates in found.items()
    ]
    bars = [(name, each.value) for name, each in zip(found, rows, strict=True)]
    chart = Chart(
        title="Committed extents a second, one core",
        x="",
        y="extents a second",
        lines=[Line("state machine", list(bars))],
    )
    return Found(rows, [chart])


def _logs(producers: bool, objects: int) -> tuple[Replica, list[Entry]]:
    replica = Replica()
    logs = [replica.create(f"log-{turn}") for turn in range(LOGS)]
    return replica, list(objects_of_many_logs(replica, logs, objects, producers=producers))


def _applied(objects: int, *, producers: bool) -> Callable[[], float]:
    def rate() -> float:
        replica, entries = _logs(producers, objects)
        apply = replica.state.apply

        def work() -> None:
            for entry in entries:
                apply(entry)

        return _settled(work, objects)

    return rate


def _replayed(objects: int) -> Callable[[], float]:
    """As after a restart: every entry decoded, then applied."""

    def rate() -> float:
        replica, entries = _logs(True, objects)
        groups = [msgspec.msgpack.encode([entry]) for entry in entries]
        apply = replica.state.apply

        def work() -> None:
            for group in groups:
                for entry in decode_group(group):
                    apply(entry)

        return _settled(work, objects)

    return rate


def _settled(work: Callable[[], None], objects: int) -> float:
    gc.collect()
    gc.freeze()
    rate = objects * LOGS / busy_seconds(work)
    gc.unfreeze()
    return rate
