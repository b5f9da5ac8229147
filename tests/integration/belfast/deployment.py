"""A Belfast log of real processes, for tests: on free ports, and ended by their numbers."""

import asyncio
import json
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from threading import Event

import msgspec

from anabranch.apps.processes.local_log import LocalLog, LogLayout, LogShape, Node, settle
from anabranch.client.belfast.aio import Log
from anabranch.core.belfast.ledger.ledger import Standing
from anabranch.core.belfast.protocol.messages import Status
from anabranch.core.errors import Unavailable

PATIENCE_S = 120.0
"""Whoever waits longer than this waits for nothing."""

_LOOK_S = 0.05
_ATTEMPTS = 3


@contextmanager
def deployed(
    folder: Path,
    shape: LogShape,
    rules: Mapping[str, int],
    *,
    copies: tuple[int, ...] = (),
    namespaces: bool = False,
) -> Iterator[LocalLog]:
    """All of it, ready. `copies`: of each shard, where they aren't alike."""
    for attempt in range(1, _ATTEMPTS + 1):
        layout = _layout(folder, shape, copies, namespaces=namespaces)
        told = {"t_ord_us": 20_000, "shards_min": len(layout.shards), **rules}
        settings = {f"ANABRANCH_RULES_{name.upper()}": str(value) for name, value in told.items()}
        local = LocalLog(folder, layout, settings=settings)
        try:
            local.start(print)
        except Unavailable:
            # Somebody may have taken a port between our look and the process's.
            if attempt == _ATTEMPTS or not any(_lost_its_port(each) for each in local.processes):
                raise
            shutil.rmtree(folder)
            continue
        try:
            yield local
        finally:
            local.kill()
        return


def _lost_its_port(node: Node) -> bool:
    return node.output.exists() and node.lost_its_port


def _layout(
    folder: Path, shape: LogShape, copies: tuple[int, ...], *, namespaces: bool
) -> LogLayout:
    layout = settle(folder, shape, namespaces=namespaces)
    if not copies:
        return layout
    shards = [
        msgspec.structs.replace(place, replicas=place.replicas[:count])
        for place, count in zip(layout.shards, copies, strict=True)
    ]
    return msgspec.structs.replace(layout, shards=shards)


def served(process: "subprocess.Popen[bytes]", output: Path) -> str:
    """The URL that `anabranch up` logs once it serves."""
    pause = Event()
    for _ in range(int(2 * PATIENCE_S / _LOOK_S)):
        for line in output.read_text().splitlines():
            if '"event":"serving"' in line:
                return json.loads(line)["url"]
        assert process.poll() is None, output.read_text()
        pause.wait(_LOOK_S)
    raise AssertionError(f"it didn't serve: {output.read_text()}")


def node_at(local: LocalLog, address: str) -> Node:
    (found,) = (node for node in local.processes if node.pair.address == address)
    return found


async def until(log: Log, what: str, holds: Callable[[Status], bool]) -> Status:
    """Look until the leader's status is so."""
    found = None
    try:
        async with asyncio.timeout(PATIENCE_S):
            while True:
                found = await log.status(timeout=PATIENCE_S)
                if holds(found):
                    return found
                await asyncio.sleep(_LOOK_S)
    except TimeoutError:
        raise AssertionError(f"waited in vain until {what}: {found}") from None


def metric(node: Node, name: str) -> float:
    """What its probe says of it now; -1 if it says nothing."""
    with closing(
        HTTPConnection(node.pair.host, node.pair.probes, timeout=PATIENCE_S)
    ) as connection:
        try:
            connection.request("GET", "/metrics")
            text = connection.getresponse().read().decode()
        except (OSError, HTTPException):
            return -1
    found = re.search(rf"^anabranch_{name} (\S+)$", text, re.MULTILINE)
    return float(found.group(1)) if found else -1


async def recovered(log: Log, local: LocalLog) -> Status:
    """Every shard has all of its replicas, and each of them has copied what is newer than that.

    A backup that has yet to come to where its primary began can't take its place.
    """
    status = await until(log, "all are back", lambda found: is_whole(local, found))
    for shard in status.shards:
        primary = node_at(local, shard.primary)
        await _comes_to(primary, "shard_epoch", shard.epoch)
        last = await asyncio.to_thread(metric, primary, "shard_last")
        for node in local.shards[shard.name]:
            await _comes_to(node, "shard_last", last + 1)
    return status


async def _comes_to(node: Node, name: str, number: float) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while True:
            if await asyncio.to_thread(metric, node, name) >= number:
                return
            await asyncio.sleep(_LOOK_S)


def is_whole(local: LocalLog, status: Status) -> bool:
    """Every shard has a seat and all of its replicas."""
    return all(
        shard.standing is Standing.SEATED
        and len(shard.replicas) == len(local.shards[shard.name])
        and not shard.silent
        for shard in status.shards
    )
