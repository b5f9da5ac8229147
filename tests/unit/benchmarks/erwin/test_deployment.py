"""The systems that are compared run as processes, and do what they are compared for."""

import asyncio

from benchmarks.erwin.deployment import CORFU, Setting, running
from benchmarks.erwin.workload import Load, measure

from anabranch.core.records.record import Record, encode


def test_corfu_appends_in_order_over_real_processes_and_serves_what_is_written() -> None:
    batches = [encode([Record(b"%d" % n)], now=1) for n in range(6)]

    async def scene() -> None:
        async with deployment.corfu() as log:
            assert [await log.append(each) for each in batches] == list(range(6))
            assert [await log.read(n) for n in range(6)] == batches
            assert await log.read(6) == b""

    with running(Setting(system=CORFU, shards=2, copies=2, delay_us=200)) as deployment:
        asyncio.run(scene())


def test_readers_follow_appends_of_an_erwin_log() -> None:
    setting = Setting(copies=2, sequencers=2, delay_us=200)
    load = Load(clients=2, rate=50, warm_s=0, run_s=0.5, record_bytes=100, lag_ms=0)
    with running(setting) as deployment:
        found = measure(deployment, load)
    assert len(found.read) == len(found.append) > 0
