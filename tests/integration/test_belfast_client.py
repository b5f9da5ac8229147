"""Belfast's client against real processes: the how-to as it stands, and a shard that fails."""

import asyncio
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from tests.integration.server_process import running as serving

from anabranch import belfast
from anabranch.apps.processes.local_log import LocalLog, LogShape, settle
from anabranch.client.belfast.aio import Events, Log
from anabranch.client.session.records import Confirm, Deliver, Event, Fail
from anabranch.core.belfast.ledger.ledger import Standing
from anabranch.core.errors import BadRequest, OutcomeUnknown, RecordVoided, Unavailable

PATIENCE_S = 90.0
STEADY = {"ANABRANCH_RULES_T_ORD_US": "20000", "ANABRANCH_RULES_ADAPTIVE": "false"}
PATIENT = {**STEADY, "ANABRANCH_RULES_FAIL_INTERVALS": "5000"}
"""Nobody is thought to have failed because this machine is busy."""


@contextmanager
def running(folder: Path, shards: int, settings: Mapping[str, str] = PATIENT) -> Iterator[LocalLog]:
    layout = settle(folder, LogShape(sequencers=1, shards=shards, copies=1))
    processes = LocalLog(folder, layout, settings=settings)
    processes.start(lambda _: None)
    try:
        yield processes
    finally:
        processes.kill()


class Account:
    """What a subscriber was told, held against what it was promised."""

    def __init__(self) -> None:
        self.seen: list[tuple[int, bytes | None]] = []
        self.confirmed = 0
        self.fails = 0

    def told(self, event: Event) -> None:
        match event:
            case Deliver(record, speculative):
                assert not self.seen or self.seen[-1][0] < record.position
                self.seen.append((record.position, record.value))
                self.confirmed = self.confirmed if speculative else record.position + 1
            case Confirm(up_to):
                assert up_to >= self.confirmed
                self.confirmed = up_to
            case Fail(since):
                assert since >= self.confirmed
                self.fails += 1
                self.seen = [each for each in self.seen if each[0] < since]


async def follow(account: Account, events: Events) -> None:
    async for event in events:
        account.told(event)


async def until_standing(log: Log, shard: str, standing: Standing) -> None:
    while True:
        told = await log.directory()
        if any(each.name == shard and each.standing is standing for each in told.shards):
            return


async def keep_appending(
    log: Log, writer: int, acked: dict[bytes, int], stop: asyncio.Event
) -> None:
    number = 0
    while not stop.is_set():
        value = b"%d.%d" % (writer, number)
        number += 1
        try:
            acked[value] = await log.append(value, timeout=PATIENCE_S)
        except (OutcomeUnknown, RecordVoided):
            continue


async def get_on(log: Log, name: bytes, acked: dict[bytes, int]) -> None:
    """So many appends later the others have got on as well."""
    for number in range(25):
        with suppress(OutcomeUnknown, RecordVoided):
            value = b"%s.%d" % (name, number)
            acked[value] = await log.append(value, timeout=PATIENCE_S)


async def lose_a_shard(processes: LocalLog) -> None:
    """A shard is stopped until the others go on without it, then it comes back."""
    url, place = processes.layout.url, processes.layout.shards[0].name
    account, acked, stop = Account(), dict[bytes, int](), asyncio.Event()
    async with belfast.aio.connect(url) as log, log.subscribe(0) as events:
        # One that has no seat yet has nothing that could fail.
        await until_standing(log, place, Standing.SEATED)
        following = asyncio.create_task(follow(account, events))
        writers = [asyncio.create_task(keep_appending(log, n, acked, stop)) for n in range(4)]
        await get_on(log, b"before", acked)
        for process in processes.shards[place]:
            process.pause()
        await until_standing(log, place, Standing.FAILED)
        await get_on(log, b"without", acked)
        for process in processes.shards[place]:
            process.resume()
        await until_standing(log, place, Standing.SEATED)
        stop.set()
        await asyncio.gather(*writers)
        while account.confirmed <= max(acked.values()) and not following.done():
            await log.directory()
        views = (await log.directory()).view
        following.cancel()
        with suppress(asyncio.CancelledError):
            await following
    found = {value: position for position, value in account.seen}
    assert len(found) == len(account.seen), "no record is there twice"
    assert {value: found.get(value) for value in acked} == acked
    assert account.fails <= views


def test_a_shard_that_fails_costs_a_rollback_at_most_and_no_acknowledged_record(
    tmp_path: Path,
) -> None:
    with running(tmp_path, 3, STEADY) as processes:
        asyncio.run(asyncio.wait_for(lose_a_shard(processes), PATIENCE_S))


def test_the_howto_is_a_program_that_runs(
    root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = (root / "docs" / "howto" / "speculate.md").read_text()
    (program,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    with serving(tmp_path) as process:
        url = f"anabranch://127.0.0.1:{process.port}"
        exec(program.replace("anabranch://127.0.0.1:7420", url), {})
    told = capsys.readouterr().out.splitlines()
    assert told[0].startswith("card-1 is at 120, by the record at ")
    assert told[1] == "{b'card-1': 120, b'card-2': 7}"


def test_a_program_without_an_event_loop(tmp_path: Path) -> None:
    unsynced = {**PATIENT, "ANABRANCH_DURABILITY": "memory"}
    with (
        running(tmp_path, 2, unsynced) as processes,
        belfast.connect(processes.layout.url) as log,
    ):
        first = log.append(b"first", shard="shard-0")
        many = log.append_many([b"%d" % number for number in range(1_000)], shard="shard-1")
        soon = log.append_soon(b"soon")
        with belfast.connect(processes.layout.url) as other:
            once = [each.append(b"once", shard="shard-0", request_id="k") for each in (log, other)]
        assert once[0] == once[1]
        with pytest.raises(BadRequest, match="name the shard"):
            log.append(b"once", request_id="k")
        assert first < many[0]
        assert many == sorted(many)
        account = Account()
        with log.subscribe(0) as events:
            while account.confirmed <= max(soon.result(), many[-1]):
                for event in events.take():
                    account.told(event)
        assert len(account.seen) == 1_003
        assert {shard.name for shard in log.directory().shards} == {"shard-0", "shard-1"}
        only = [b"1"]
        with log.subscribe(0, where=lambda record: record.value in only) as events:
            told = next(event for event in events if isinstance(event, Deliver))
        assert told.record.shard == "shard-1"
        status = log.status()
        assert status.confirmed > many[-1]
        assert not status.fsync
        hasty = belfast.connect(processes.layout.url)
        pending = hasty.append_soon(b"pending")
        hasty.close(wait=False)
        with pytest.raises(Unavailable, match="closed"):
            pending.result()
