"""How the operator asks the sequencers of a lazy front, each of which is a process here."""

import asyncio
from pathlib import Path
from typing import cast

import pytest
from tests.integration.erwin.test_erwin_service import PATIENCE_S, cluster

from anabranch import aio
from anabranch.client.lazy_log import LazyLog
from anabranch_operator.api import names
from anabranch_operator.api.common import GroupEngineName
from anabranch_operator.plan.engine.events import Visit
from anabranch_operator.plan.engine.objects import Ref
from anabranch_operator.plan.groups.report import Report
from anabranch_operator.service import log_client
from anabranch_operator.service.log_client import Visitor

SET = Ref(names.SEQUENCERS, "demo", "clicks")


async def visited(visitor: Visitor, url: str, *, records: int) -> Report:
    """Once all members of a steady view are known, and so many records are in the log."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            visit = Visit(SET, "u", url, GroupEngineName.LAZY)
            found = (await visitor.visit(visit)).report
            if found is not None and found.reached and found.settled == records:
                return found
            await asyncio.sleep(0.05)


def test_any_sequencer_says_who_counts_and_the_leader_what_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_client, "VISIT_S", PATIENCE_S)

    async def look(url: str) -> None:
        async with aio.connect(url, timeout=PATIENCE_S) as service:
            made = await service.create("clicks", append="lazy", timeout=PATIENCE_S)
            log = cast("LazyLog", made)
            await log.append(b"1", timeout=PATIENCE_S)
            front = (await log.describe(timeout=PATIENCE_S)).front
        assert front is not None
        visitor = Visitor("operator", "", "", lambda what, code: None)
        try:
            where = f"erwin://{','.join(front.addresses)}/{front.cluster}"
            found = await visited(visitor, where, records=1)
        finally:
            visitor.close()
        assert set(found.reached) == set(found.members) == set(front.addresses)
        assert found.leader in front.addresses
        assert found.shards == ()
        told = found.sequencing
        assert told is not None
        assert (told.changing, told.obstacle, told.unheard, told.held_up) == ("", "", "", "")
        assert (told.tail, told.backlog, told.durability) == (1, 0, "fsync")

    with cluster(tmp_path) as url:
        asyncio.run(look(url))
