"""Promotion by the number of records after the fork point, and a copy of the same data (paper:
figure 11).
"""

import gc
from statistics import median

from anabranch.client.bolt.sync_log import Log
from anabranch.core.bolt.protocol.commands import Entry, Promote, Promotion
from benchmarks.replicas import AT, Replica
from benchmarks.report import Chart, Found, Line, Row, row, versus
from benchmarks.server import running
from benchmarks.size import Size
from benchmarks.timing import busy, seconds

BATCH = 16
VALUE_BYTES = 256


def run(size: Size) -> Found:
    counts = size.of([10, 1_000, 100_000, 1_000_000], [10, 1_000])
    rounds = size.of(9, 2)
    took: dict[int, list[float]] = {count: [] for count in counts}
    mixed: dict[int, list[float]] = {count: [] for count in counts}
    for _ in range(rounds):
        for count in counts:
            took[count].append(_promotion_us(count, parents_too=False))
            mixed[count].append(_promotion_us(count, parents_too=True))
    rows: list[Row] = []
    least = took[counts[0]]
    for count in counts:
        extents = max(1, count // BATCH)
        rows.append(row(f"promote of {count:,} records", took[count], "us"))
        if extents == 1:
            continue
        # Beside what any promotion costs.
        each = [(us - one) / extents for us, one in zip(took[count], least, strict=True)]
        rows.append(row(f"  each of its {extents:,} extents", each, "us", at_most=2))
        each = [(us - one) / extents / 2 for us, one in zip(mixed[count], least, strict=True)]
        what = f"  each, if there are {extents:,} of the parent between"
        rows.append(row(what, each, "us", at_most=2))
    rows += _linear(counts, took)
    copied = size.of([10, 1_000, 100_000], [10])
    copies = _copies(copied)
    for count in copied:
        mean = median(took[count])
        what = f"copy of {count:,} records of {VALUE_BYTES} B through the client"
        rows.append(versus(what, copies[count], "us", "the promotion", mean))
    lines = [
        Line("promote", [(n, median(took[n])) for n in counts]),
        Line("promote, as many extents of the parent", [(n, median(mixed[n])) for n in counts]),
        Line("copy of the data", [(n, copies[n]) for n in copied]),
    ]
    chart = Chart(
        title="Promote, by the records after the fork point",
        x="records after the fork point, 16 an extent",
        y="microseconds",
        lines=lines,
        log_x=True,
        log_y=True,
    )
    return Found(rows, [chart])


def _linear(counts: list[int], took: dict[int, list[float]]) -> list[Row]:
    """Ten times as much takes no more than ten times as long."""
    if len(counts) < 4:
        return []
    longest, shorter = counts[-1], counts[-2]
    times = longest // shorter
    other = [us * times for us in took[shorter]]
    what, against = f"promote of {longest:,} records", f"{times} times {shorter:,} records"
    return [versus(what, took[longest], "us", against, other, at_most=1.3)]


def _promotion_us(records: int, *, parents_too: bool) -> float:
    replica = Replica()
    root = replica.create("orders")
    replica.fill(root, 100_000, BATCH)
    replica.append(root, BATCH)  # columns that have grown by themselves have room
    fork = replica.fork(root, promotable=True)
    left = records
    while left > 0:
        replica.append(fork, min(BATCH, left))
        if parents_too:
            replica.append(root, min(BATCH, left))
        left -= BATCH
    entry = Entry(AT, replica.request(), Promote(fork))
    gc.collect()
    gc.freeze()
    began = busy()
    done = replica.state.apply(entry)
    ended = busy()
    gc.unfreeze()
    assert isinstance(done, Promotion)
    assert done.records == records
    return (ended - began) / 1e3


def _copies(counts: list[int]) -> dict[int, float]:
    """Without promotion: an agent's records, read from its log and appended to the other."""
    found: dict[int, float] = {}
    with running() as server, server.connect() as service:
        for count in counts:
            source = service.create(f"from-{count}")
            target = service.create(f"to-{count}")
            source.append_many([bytes(VALUE_BYTES)] * count)

            def copy(source: Log = source, target: Log = target) -> None:
                records = (each for batch in source.read_batches() for each in batch.records())
                target.append_many(record.value or b"" for record in records)

            found[count] = seconds(copy) * 1e6
    return found
