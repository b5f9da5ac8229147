"""A log of real processes as programs and people use it."""

import asyncio
import json
import subprocess
from pathlib import Path

import pytest
from tests.integration.belfast.deployment import PATIENCE_S, until
from tests.integration.cli_server import ANABRANCH, bare

import anabranch
from anabranch.apps.pods.log_settings import ShardSettings
from anabranch.apps.pods.shard import serve
from anabranch.apps.processes.local_log import LocalLog
from anabranch.client.belfast import aio
from anabranch.client.belfast.aio import Log
from anabranch.client.session.records import Deliver, Fail
from anabranch.core.belfast.protocol.messages import Where
from anabranch.core.errors import JournalCorrupt, PositionTrimmed, TrimTooFar
from anabranch.core.storage.journal import HEADER_BYTES
from anabranch.shell.journal.disk import RealDisk
from anabranch.shell.journal.file_journal import FileJournal


def test_an_asyncio_program_appends_reads_ahead_and_trims(shared: LocalLog) -> None:
    async def scenario() -> None:
        async with aio.connect(shared.layout.url, timeout=PATIENCE_S) as log:
            start = (await log.status(timeout=PATIENCE_S)).confirmed
            async with asyncio.timeout(PATIENCE_S), log.subscribe(start) as events:
                first = await log.append(b"a", key=b"k", shard="shard-0")
                second = await log.append(b"b", key=b"l", shard="shard-1")
                assert start <= first < second
                seen: list[tuple[int, bytes | None, str]] = []
                while events.final <= second:
                    for event in await events.take(timeout=1):
                        assert not isinstance(event, Fail)
                        if isinstance(event, Deliver):
                            record = event.record
                            seen.append((record.position, record.value, record.shard))
                assert seen == [(first, b"a", "shard-0"), (second, b"b", "shard-1")]
            only = log.subscribe(start, where=Where(key_prefix=b"l"), speculative=False)
            async with asyncio.timeout(PATIENCE_S), only as events:
                (event,) = await events.take()
                assert isinstance(event, Deliver)
                assert event.record.position == second
            with pytest.raises(TrimTooFar):
                await log.trim(1 << 40, timeout=PATIENCE_S)
            await log.trim(second, timeout=PATIENCE_S)
            await until(log, "it is trimmed", lambda status: status.trimmed == second)
            async with asyncio.timeout(PATIENCE_S):
                await until_trimmed(log, first)

    async def until_trimmed(log: Log, position: int) -> None:
        """Shards hear of a trim a moment after the sequencer that was asked."""
        while True:
            try:
                async with log.subscribe(position) as events:
                    await events.take()
            except PositionTrimmed:
                return

    asyncio.run(scenario())


def test_a_program_without_an_event_loop_does_the_same(shared: LocalLog) -> None:
    with anabranch.belfast.connect(shared.layout.url, timeout=PATIENCE_S) as log:
        start = log.status(timeout=PATIENCE_S).confirmed
        positions = log.append_many([b"%d" % number for number in range(20)], timeout=PATIENCE_S)
        assert positions == sorted(positions)
        found: list[tuple[int, bytes | None]] = []
        with log.subscribe(start, speculative=False) as events:
            while events.final <= positions[-1]:
                found += [
                    (event.record.position, event.record.value)
                    for event in events.take(timeout=1)
                    if isinstance(event, Deliver)
                ]
        assert found == [(position, b"%d" % nth) for nth, position in enumerate(positions)]


def test_people_look_at_it_append_and_read_by_commands(shared: LocalLog) -> None:
    said = command(shared, "append", "hello", "world", "--shard", "shard-1")
    first, last = (int(word) for word in said.split())
    assert first < last
    tail = command(shared, "tail", "--from", str(first), "--records", "2")
    assert f"{first} shard-1 - hello" in tail
    assert f"{last} shard-1 - world" in tail
    status = command(shared, "status")
    assert status.split()[:2] == ["LEADER", "TERM"]
    assert "shard-0" in status
    assert "seated" in status
    found = json.loads(command(shared, "status", "--output", "json"))
    assert found["confirmed"] > last
    assert {shard["name"]: shard["standing"] for shard in found["shards"]} == {
        "shard-0": "seated",
        "shard-1": "seated",
    }
    assert "NEXT QUOTA" in command(shared, "windows")
    top = command(shared, "top", "--count", "2", "--interval", "10ms")
    assert top.count("RECORDS/s") == 2
    assert "nothing before" in command(shared, "trim", str(first))


def command(local: LocalLog, *words: str) -> str:
    done = subprocess.run(
        [*ANABRANCH, "belfast", *words],
        env={**bare(), "ANABRANCH_URL": local.layout.url},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_journal_that_is_damaged_is_what_a_start_fails_of(tmp_path: Path) -> None:
    """And nothing else hides it."""
    settings = ShardSettings(
        cluster="c",
        host="127.0.0.1",
        port=0,
        probe_port=-1,
        data=str(tmp_path / "data"),
        shard="a",
        sequencers=("127.0.0.1:1",),
    )

    async def lived() -> None:
        stop = asyncio.Event()
        await serve(settings, lambda _: stop.set(), stop=stop)

    asyncio.run(lived())
    folder = tmp_path / "data" / "journal"
    journal = FileJournal(RealDisk(str(folder)), "c")
    journal.recover()
    for _ in range(3):
        journal.append([b"an entry"])
    journal.close()
    segment = max(folder.glob("*.segment"))
    content = bytearray(segment.read_bytes())
    content[HEADER_BYTES + 40] ^= 1
    segment.write_bytes(content)
    with pytest.raises(JournalCorrupt):
        asyncio.run(lived())
