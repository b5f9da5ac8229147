"""The real server on a disk that fails: what it says, what it refuses, and what comes back."""

import asyncio
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.integration.kill.campaign import Campaign
from tests.integration.kill.server import Pipes, Server
from tests.integration.loop_disk import LoopDisk

from anabranch import aio
from anabranch.client.bolt.log import Log
from anabranch.core.errors import (
    AnabranchError,
    OutcomeUnknown,
    RecordsDamaged,
    StorageFull,
)
from anabranch.core.storage.journal import HEADER_BYTES
from anabranch.core.types import Position

RECORDS = 40
DAMAGE = 5
"""The exit code of what was damaged."""


@pytest.mark.parametrize(
    ("seed", "cuts"),
    [
        (1, 2),
        pytest.param(1, 4, marks=pytest.mark.nightly),
        pytest.param(2, 4, marks=pytest.mark.nightly),
    ],
)
def test_a_lost_power_costs_nothing_that_was_acknowledged(
    loop: LoopDisk, tmp_path: Path, seed: int, cuts: int
) -> None:
    with Campaign(tmp_path, seed, loop.mount / "data") as campaign:
        for _ in range(cuts):
            campaign.lose_power(loop)
        faults = campaign.finish()
    assert not faults, f"seed {seed}, {campaign.settings}: {faults[:10]}"


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.nightly)])
def test_a_full_disk_is_waited_for_and_costs_nothing_that_was_acknowledged(
    loop: LoopDisk, tmp_path: Path, seed: int
) -> None:
    with Campaign(tmp_path, seed, loop.mount / "data") as campaign:
        for kill in (False, True, False):
            campaign.fill(loop, kill=kill)
        faults = campaign.finish()
    assert not faults, f"seed {seed}, {campaign.settings}: {faults[:10]}"


def test_a_full_disk_keeps_nobody_from_reading(loop: LoopDisk) -> None:
    """Space that others took while no server ran: the next one has none from its beginning."""

    async def append(within_s: float) -> Position | None:
        async with aio.connect(server.url) as service:
            log = await service.log("orders")
            return (await log.append(b"one more", timeout=within_s)).position

    with filled(loop.mount / "data") as server:
        server.start()
        assert server.end(signal.SIGTERM) == 0
        ballast = loop.fill()
        server.start()
        assert values(server) == expected()
        with pytest.raises(OutcomeUnknown):
            asyncio.run(append(0.5))
        ballast.unlink()
        assert asyncio.run(append(20)) in {RECORDS, RECORDS + 1}, "the other may be there as well"
        loop.fill()
        with pytest.raises(OutcomeUnknown) as refused:
            asyncio.run(append(0.5))
        assert isinstance(refused.value.__cause__, StorageFull)
        assert values(server) == expected()
        assert server.end(signal.SIGTERM) == 0
        assert server.fsck()["sound"]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with filled(tmp_path / "data") as server:
        yield server


@contextmanager
def filled(data: Path) -> Iterator[Server]:
    """With RECORDS records, each in an object of its own, and nobody serving them."""
    pipes = Pipes()
    server = Server(data, pipes, gc_interval_ms=20, linger_ms=0, propose_retry_ms=100)
    try:
        server.start()
        asyncio.run(fill(server))
        assert server.end() == -signal.SIGKILL
        yield server
    finally:
        server.close()
        pipes.close()


async def fill(server: Server) -> None:
    async with aio.connect(server.url) as service:
        log = await service.create("orders")
        for number in range(RECORDS):
            await log.append(b"%d" % number * 100)


def values(server: Server) -> list[bytes | AnabranchError]:
    """Record by record, what is there or what is said in its place."""

    async def read(log: Log, position: int) -> bytes | AnabranchError:
        try:
            (record,) = [each async for each in log.read(position, 1)]
            return record.value or b""
        except AnabranchError as error:
            return error

    async def all_of_it() -> list[bytes | AnabranchError]:
        async with aio.connect(server.url) as service:
            log = await service.log("orders", engine="bolt")
            return [await read(log, position) for position in range(RECORDS)]

    return asyncio.run(all_of_it())


def expected() -> list[bytes]:
    return [b"%d" % number * 100 for number in range(RECORDS)]


def objects(server: Server) -> list[Path]:
    return sorted(path for path in (server.data / "objects").rglob("0*") if path.is_file())


def flip(path: Path, offset: int) -> None:
    content = bytearray(path.read_bytes())
    content[offset] ^= 0x10
    path.write_bytes(content)


@pytest.mark.parametrize("part", [0.1, 0.5, 0.8])
def test_a_flipped_bit_in_the_journal_is_refused_with_its_place(
    server: Server, part: float
) -> None:
    (segment,) = (server.data / "journal").glob("*.segment")
    used = len(segment.read_bytes().rstrip(b"\0"))
    at = HEADER_BYTES + round((used - HEADER_BYTES) * part)
    flip(segment, at)
    before = segment.read_bytes()
    server.launch()
    assert server.ended() == DAMAGE
    place = f"journal file {segment} is damaged at byte "
    assert place in server.said
    offset = int(server.said.partition(place)[2].partition(":")[0])
    assert at - 300 < offset <= at, "the group that holds the bit, no more than a few hundred bytes"
    assert segment.read_bytes() == before, "it changed what it couldn't read"
    (fault,) = [each for each in server.fsck()["faults"] if each["code"] == "journal-corrupt"]
    assert f"{place}{offset}" in fault["reason"]
    flip(segment, at)
    server.start()
    assert values(server) == expected()


def test_a_flipped_bit_in_an_object_is_told_to_its_readers_alone(server: Server) -> None:
    broken = objects(server)[RECORDS // 2]
    flip(broken, 100)
    server.start()
    found = values(server)
    wrong = [position for position in range(RECORDS) if found[position] != expected()[position]]
    assert wrong == [RECORDS // 2]
    told = found[RECORDS // 2]
    assert isinstance(told, RecordsDamaged)
    name = str(broken.relative_to(server.data / "objects"))
    assert f"object {name}: " in told.message
    assert "at byte " in told.message
    server.end()
    faults = server.fsck()["faults"]
    assert any(fault["where"].startswith(f"{name} byte ") for fault in faults)
    assert any(fault["code"] == "lost-records" for fault in faults)


def test_a_missing_object_is_named_to_its_readers_alone(server: Server) -> None:
    lost = objects(server)[3]
    name = str(lost.relative_to(server.data / "objects"))
    lost.unlink()
    server.start()
    found = values(server)
    wrong = [position for position in range(RECORDS) if found[position] != expected()[position]]
    assert wrong == [3]
    told = found[3]
    assert isinstance(told, RecordsDamaged)
    assert name in told.message
    server.end()
    assert any(
        fault["code"] == "object-missing" and name in fault["reason"]
        for fault in server.fsck()["faults"]
    )


def test_an_object_that_was_never_committed_is_deleted_by_the_next_server(server: Server) -> None:
    """As a kill between the writing of an object and its commit leaves it."""
    last = objects(server)[-1]
    orphan = last.with_name(f"{int(last.name) + 1:0{len(last.name)}}")
    orphan.write_bytes(last.read_bytes())
    found = server.fsck()
    assert found["sound"]
    assert found["orphans"]["objects"] == 1
    server.start()
    assert server.pipes.until(lambda: not orphan.exists(), look_s=0.01), "it is still there"
    assert values(server) == expected()
    server.end()
    assert server.fsck()["orphans"]["objects"] == 0
