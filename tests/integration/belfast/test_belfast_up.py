"""`anabranch up --engine belfast`: started, ended, started again with more shards."""

import asyncio
import json
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.integration.belfast.deployment import PATIENCE_S, served, until
from tests.integration.cli_server import ANABRANCH, bare

from anabranch.apps.processes.local_log import FILES
from anabranch.client.belfast import aio
from anabranch.client.belfast.aio import Log
from anabranch.client.session.records import Deliver
from anabranch.core.belfast.ledger.ledger import Standing
from anabranch.core.belfast.protocol.messages import Status

FILE = FILES["belfast"]
_LOOK_S = 0.05


@contextmanager
def up(folder: Path, shards: int) -> Iterator[str]:
    """Its URL, while it runs; it ends by a signal, and well."""
    told = ["--engine", "belfast", "--sequencers", "1", "--copies", "1", "--shards", str(shards)]
    words = [*ANABRANCH, "up", *told, "--data", str(folder), "--log-format", "json"]
    output = folder.with_suffix(".log")
    with output.open("wb") as file:
        environment = {
            **bare(),
            "ANABRANCH_RULES_T_ORD_US": "20000",
            # Shards start one after the other: none has failed that isn't there yet.
            "ANABRANCH_RULES_FAIL_INTERVALS": "100000",
        }
        process = subprocess.Popen(words, env=environment, stdout=file, stderr=file)
    try:
        yield served(process, output)
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE_S) == 0, output.read_text()
    finally:
        if process.poll() is None:
            # It ends its own processes also when it is told twice.
            process.terminate()
            process.wait()


async def appended(log: Log, *shards: str) -> dict[int, bytes]:
    """One record to each of these."""
    return {
        await log.append(shard.encode(), shard=shard, timeout=PATIENCE_S): shard.encode()
        for shard in shards
    }


async def read(log: Log, upto: int) -> dict[int, bytes | None]:
    """All that is confirmed."""
    found: dict[int, bytes | None] = {}
    async with asyncio.timeout(PATIENCE_S), log.subscribe(0, speculative=False) as events:
        while events.final < upto:
            for event in await events.take(timeout=_LOOK_S):
                if isinstance(event, Deliver):
                    found[event.record.position] = event.record.value
    return {position: value for position, value in found.items() if position < upto}


def seated(status: Status) -> list[str]:
    return sorted(each.name for each in status.shards if each.standing is Standing.SEATED)


def append_by_cli(url: str, shard: str) -> dict[int, bytes]:
    """One record by one command, within its own time; no second try."""
    words = ["belfast", "append", "--url", url, "--shard", shard, "--output", "json", "first"]
    said = subprocess.run(
        [*ANABRANCH, *words], env=bare(), capture_output=True, check=False, text=True
    )
    assert said.returncode == 0, said.stderr
    (position,) = json.loads(said.stdout)["positions"]
    return {position: b"first"}


def test_everything_is_there_after_a_restart_and_shards_come_and_go(tmp_path: Path) -> None:
    folder = tmp_path / "log"

    async def first(url: str) -> dict[int, bytes]:
        async with aio.connect(url, timeout=PATIENCE_S) as log:
            return await appended(log, "shard-0", "shard-1", "shard-0")

    async def again(url: str, known: dict[int, bytes]) -> None:
        async with aio.connect(url, timeout=PATIENCE_S) as log:
            assert len(seated(await log.status(timeout=PATIENCE_S))) == 3
            known |= await asyncio.to_thread(append_by_cli, url, "shard-2")
            assert await read(log, 1 + max(known)) == known
            known |= await appended(log, "shard-2", "shard-1")
            await log.leave("shard-0", timeout=PATIENCE_S)
            gone = ["shard-1", "shard-2"]
            status = await until(log, "it has left", lambda status: seated(status) == gone)
            assert status.view == 0
            known |= await appended(log, "shard-2")
            assert await read(log, 1 + max(known)) == known

    with up(folder, 2) as url:
        at_once = append_by_cli(url, "shard-1")
        known = at_once | asyncio.run(first(url))
    layout = json.loads((folder / FILE).read_bytes())
    with up(folder, 3) as url:
        asyncio.run(again(url, known))
    grown = json.loads((folder / FILE).read_bytes())
    assert (grown["cluster"], grown["shards"][:2]) == (layout["cluster"], layout["shards"])
