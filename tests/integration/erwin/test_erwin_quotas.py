"""Quotas of Erwin logs whose nodes are processes: all sequencers enforce the log's."""

import asyncio
from pathlib import Path

import pytest
from tests.integration.erwin.deployment import PATIENCE_S, Log, connected, deployed

from anabranch.apps.processes.local_log import LocalLog, LogShape, Promise
from anabranch.core.errors import AnabranchError, QuotaExceeded
from anabranch.core.quota import Quota

SHAPE = LogShape(sequencers=2, shards=1, copies=1)
HARDLY_ANY = Quota(append_records_per_s=1, burst_ms=1)


@pytest.mark.parametrize("mode", ["m", "st"])
def test_appends_over_the_logs_quota_wait_and_are_in_the_log_once(
    tmp_path: Path, mode: str
) -> None:
    async def story(local: LocalLog) -> None:
        async with connected(local) as log:
            await log.append(b"before")
            local.limit_appends("audit", HARDLY_ANY)
            refusal = await refused(log)
            assert refusal.facts["log"] == "audit"
            assert refusal.facts["quota"] == "append_records_per_s"
            waiting = asyncio.ensure_future(log.append(b"waited", timeout=PATIENCE_S))
            local.limit_appends("audit", None)
            await waiting
            found = [each async for each in log.read(0, timeout=PATIENCE_S)]
            values = [each.value for each in found]
            assert values.count(b"waited") == 1
            assert values[0] == b"before"
            taken = [each.position for each in found]
            assert taken == list(range(len(found))), "what is refused becomes no no-ops"

    with deployed(tmp_path, Promise(mode, "fsync"), SHAPE) as local:
        asyncio.run(story(local))


async def refused(log: Log) -> QuotaExceeded:
    """Append until the quota is known to the processes, and used up."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            try:
                await log.append(b"over", timeout=0.5)
            except AnabranchError as error:
                if isinstance(error, QuotaExceeded):
                    return error
                if isinstance(error.__cause__, QuotaExceeded):
                    return error.__cause__
