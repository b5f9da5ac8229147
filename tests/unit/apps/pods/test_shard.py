"""A sequencer and a shard as their pods run them, over sockets and real journals."""

import asyncio
import os
import shutil
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest
from tests.unit.shell.nodes import run

from anabranch.apps.pods import sequencer, shard
from anabranch.apps.pods.log_settings import SequencerSettings, ShardSettings
from anabranch.apps.pods.pod import Endpoint
from anabranch.belfast import aio
from anabranch.belfast.aio import Log
from anabranch.core.belfast.ledger.rules import Rules
from anabranch.core.errors import (
    JournalBehind,
    JournalCorrupt,
    QuotaExceeded,
    Unavailable,
    WrongCluster,
)

RULES = Rules(t_ord_us=5_000)


class Deployment:
    """One sequencer and one shard with one replica."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.quota = folder / "quota.json"
        self.sequencer = ""
        self.shard = ""

    @asynccontextmanager
    async def alive(self) -> AsyncGenerator["Deployment"]:
        stop = asyncio.Event()
        async with AsyncExitStack() as stack:
            tasks: list[asyncio.Task[None]] = []
            stack.push_async_callback(self._end, stop, tasks)
            told: asyncio.Queue[Endpoint] = asyncio.Queue()
            tasks.append(
                asyncio.ensure_future(
                    sequencer.serve(self.sequencer_settings(), told.put_nowait, stop=stop)
                )
            )
            self.sequencer = (await told.get()).advertised
            tasks.append(
                asyncio.ensure_future(
                    shard.serve(self.shard_settings(), told.put_nowait, stop=stop)
                )
            )
            self.shard = (await told.get()).advertised
            yield self

    async def _end(self, stop: asyncio.Event, tasks: "list[asyncio.Task[None]]") -> None:
        stop.set()
        await asyncio.gather(*tasks)

    def sequencer_settings(self) -> SequencerSettings:
        return SequencerSettings(
            cluster="c",
            name="seq",
            data=str(self.folder / "seq"),
            port=_port(self.sequencer),
            probe_port=-1,
            rules=RULES,
            reached_file=str(self.folder / "reached" / "seq"),
        )

    def shard_settings(self) -> ShardSettings:
        return ShardSettings(
            cluster="c",
            name="a",
            shard="a",
            data=str(self.folder / "a"),
            sequencers=(self.sequencer,),
            port=_port(self.shard),
            probe_port=-1,
            log_quota_file=str(self.quota),
            reached_file=str(self.folder / "reached" / "a"),
        )

    @asynccontextmanager
    async def log(self) -> AsyncGenerator[Log]:
        async with aio.connect(f"belfast://{self.sequencer}/c") as log:
            yield log

    def limit(self, text: str) -> None:
        part = self.quota.with_suffix(".part")
        part.write_text(text)
        part.replace(self.quota)


def _port(address: str) -> int:
    """The same as before, after the first time."""
    return int(address.rpartition(":")[2] or 0)


def test_what_is_appended_is_read(tmp_path: Path) -> None:
    async def scene() -> None:
        deployment = Deployment(tmp_path)
        async with deployment.alive(), deployment.log() as log:
            first = await log.append(b"first")
            second = await log.append(b"second")
            assert second > first
            assert [each.value async for each in log.read()] == [b"first", b"second"]

    run(scene())


def test_its_share_of_a_quota_holds_from_the_start_and_changes_while_it_runs(
    tmp_path: Path,
) -> None:
    async def scene() -> None:
        deployment = Deployment(tmp_path)
        deployment.limit('{"log": "ticks", "append_records_per_s": 1, "burst_ms": 1}')
        async with deployment.alive(), deployment.log() as log:
            await log.append(b"the shard is admitted")
            await log.append_many([b"x"] * 1_000, shard="a", request_id="one batch")
            with pytest.raises(QuotaExceeded, match="ticks may take 1 "):
                await log.append(b"over", timeout=1)
            deployment.limit("{}")
            await log.append(b"lifted")

    run(scene())


def _first_half(journal: Path) -> None:
    (path,) = journal.glob("*.segment")
    os.truncate(path, path.stat().st_size // 2)


@pytest.mark.parametrize("lost", [shutil.rmtree, _first_half], ids=["gone", "shorter"])
@pytest.mark.parametrize("which", ["seq", "a"])
def test_a_journal_that_ends_before_what_is_noted_is_refused(
    tmp_path: Path, which: str, lost: Callable[[Path], None]
) -> None:
    async def scene() -> None:
        deployment = Deployment(tmp_path)
        async with deployment.alive(), deployment.log() as log:
            for _ in range(20):
                await log.append(b"x" * 1_000)
        lost(tmp_path / which / "journal")
        again = (
            shard.serve(deployment.shard_settings(), stop=asyncio.Event())
            if which == "a"
            else sequencer.serve(deployment.sequencer_settings(), stop=asyncio.Event())
        )
        with pytest.raises((JournalBehind, JournalCorrupt)):
            await again

    run(scene())


def test_a_node_whose_note_is_gone_as_well_is_new(tmp_path: Path) -> None:
    async def scene() -> None:
        deployment = Deployment(tmp_path)
        async with deployment.alive(), deployment.log() as log:
            await log.append(b"x")
        for each in ("seq", "a"):
            shutil.rmtree(tmp_path / each)
        shutil.rmtree(tmp_path / "reached")
        async with deployment.alive(), deployment.log() as log:
            await log.append(b"y")
            assert [each.value async for each in log.read()] == [b"y"]

    run(scene())


def test_a_directory_of_another_cluster_is_refused(tmp_path: Path) -> None:
    async def scene() -> None:
        deployment = Deployment(tmp_path)
        async with deployment.alive():
            pass
        other = SequencerSettings(
            cluster="d", name="seq", data=str(tmp_path / "seq"), port=0, probe_port=-1
        )
        with pytest.raises(WrongCluster):
            await sequencer.serve(other, stop=asyncio.Event())

    run(scene())


def test_a_port_that_is_taken_is_said(tmp_path: Path) -> None:
    async def scene() -> None:
        deployment = Deployment(tmp_path)
        async with deployment.alive():
            taken = SequencerSettings(
                cluster="c",
                name="other",
                data=str(tmp_path / "other"),
                port=_port(deployment.sequencer),
                probe_port=-1,
            )
            with pytest.raises(Unavailable, match="Address already in use"):
                await sequencer.serve(taken, stop=asyncio.Event())
            assert not (tmp_path / "other").exists(), "nothing was begun"

    run(scene())
