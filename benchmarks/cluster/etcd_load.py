"""What a steady load asks of etcd, and that it doesn't fill it."""

from collections.abc import Iterator

from anabranch.apps.processes.layout import Shape
from benchmarks.cluster import flood
from benchmarks.cluster.local import Cluster, etcd_counted, running
from benchmarks.cluster.worker import at_work
from benchmarks.report import Chart, Found, Line, Row, row, versus
from benchmarks.size import Size

MILLION = 1_000_000
CONNECTIONS = 4
SHAPES = {
    "256 B records in batches of 64 KiB": (256, 240),
    "4 KiB records in batches of 64 KiB": (4_080, 16),
}
"""By what clients send: bytes of a value, and records of a batch."""
MANY = 200
"""Records of a batch when ten million are appended: 50,000 batches, each in the metadata."""
PORTIONS = 20
SNAPSHOT_BYTES = 100_000
"""Of journal between two snapshots: small, so that there are many in ten million records."""

_PUT_BYTES = "etcd_debugging_mvcc_total_put_size_in_bytes"
_TXNS = "etcd_mvcc_txn_total"
_IN_USE = "etcd_mvcc_db_total_size_in_use_in_bytes"
_ON_DISK = "etcd_mvcc_db_total_size_in_bytes"


def run(size: Size) -> Found:
    shape = Shape(brokers=1, metadata=size.of(3, 1))
    rows: list[Row] = []
    with running(shape) as cluster:
        for what, (value_bytes, records) in SHAPES.items():
            rows += _steady(cluster, what, value_bytes, records, size)
    small = {"ANABRANCH_SNAPSHOT_BYTES": str(size.of(SNAPSHOT_BYTES, 2_000))}
    with running(shape, small) as cluster:
        more, chart = _growth(cluster, size)
    return Found(rows + more, [chart], _NOTES)


def _steady(
    cluster: Cluster, what: str, value_bytes: int, records: int, size: Size
) -> Iterator[Row]:
    """Transactions that write, and bytes put, for each 1,000 records."""
    plan = _plan(cluster, f"{value_bytes}", value_bytes, records, size.of(3.0, 0.2))
    txns: list[float] = []
    put_bytes: list[float] = []
    rates: list[float] = []
    with at_work(flood.MODULE, plan, flood.Done) as worker:
        for _ in range(size.of(5, 1)):
            before = etcd_counted(cluster)
            done = worker.once()
            after = etcd_counted(cluster)
            thousands = done.all_records / 1_000
            txns.append((after[_TXNS] - before[_TXNS]) / thousands)
            put_bytes.append((after[_PUT_BYTES] - before[_PUT_BYTES]) / thousands)
            rates.append(done.records_per_s)
    yield row(f"{what}: records", rates, "records/s")
    yield row("  transactions of etcd for 1,000 records", txns, "txns", at_most=1)
    yield row("  bytes put for 1,000 records", put_bytes, "B", at_most=2_048)


def _growth(cluster: Cluster, size: Size) -> tuple[list[Row], Chart]:
    portion = size.of(10 * MILLION, 40_000) // PORTIONS
    appends = portion // CONNECTIONS // MANY
    plan = _plan(cluster, "many", 8, MANY, 600, appends=appends, in_flight=4)
    held: list[tuple[float, float]] = []
    kept: list[tuple[float, float]] = []
    with at_work(flood.MODULE, plan, flood.Done) as worker:
        for turn in range(1, PORTIONS + 1):
            worker.once()
            numbers = etcd_counted(cluster)
            held.append((turn * portion, numbers[_IN_USE] / 1e6))
            kept.append((turn * portion, numbers[_ON_DISK] / 1e6))
    half = PORTIONS // 2
    highest = max(in_use for _, in_use in held[:half])
    later = max(in_use for _, in_use in held[half:])
    what = f"etcd in use, at most, in the second half of {portion * PORTIONS:,} records"
    rows = [
        versus(what, later, "MB", "the first half's", highest, at_most=1.25),
        row("etcd's file at the end", kept[-1][1], "MB"),
    ]
    lines = [Line("in use", list(held)), Line("its file", list(kept))]
    chart = Chart(title="etcd, by what was appended", x="records", y="MB", lines=lines)
    return rows, chart


def _plan(
    cluster: Cluster,
    name: str,
    value_bytes: int,
    records: int,
    seconds: float,
    *,
    appends: int = 0,
    in_flight: int = 16,
) -> flood.Plan:
    with cluster.connect() as service:
        log = service.create(f"steady-{name}")
        port = cluster.broker_of(log.describe()).pair.port
    return flood.Plan(
        targets=[flood.Target(port, log.id)],
        connections=CONNECTIONS,
        in_flight=in_flight,
        seconds=seconds,
        value_bytes=value_bytes,
        records=records,
        warm_s=0,
        appends_max=appends,
    )


_NOTES = [
    f"{CONNECTIONS} clients with 16 batches in flight each, for the growth with 4; etcd's counters",
    (
        f"for the growth, a snapshot after each {SNAPSHOT_BYTES:,} B of journal, which is the "
        "setting snapshot_bytes, and batches of few bytes"
    ),
]
