"""How the operator asks logs: with nobody there, and with real sequencers and a shard."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from anabranch.apps.pods import shard
from anabranch.apps.pods.log_settings import LogEngine, SequencerSettings, ShardSettings
from anabranch.apps.pods.pod import Endpoint
from anabranch.apps.pods.sequencer import serve
from anabranch.apps.processes.ports import free_ports
from anabranch.core.errors import CantJoin, DeadlineExceeded, Unavailable, UnknownShard
from anabranch.core.errors.refused import Refused
from anabranch_operator.api import names
from anabranch_operator.plan.engine.actions import JoinShard, LeaveShard
from anabranch_operator.plan.engine.events import Visit, Visited
from anabranch_operator.plan.engine.objects import Ref
from anabranch_operator.plan.groups.report import Standing
from anabranch_operator.service import log_client
from anabranch_operator.service.log_client import Visitor

LOG = Ref(names.SEQUENCERS, "demo", "orders")
PATIENCE_S = 60.0


@asynccontextmanager
async def visiting(token: Path | None = None) -> AsyncIterator[tuple[Visitor, list[str]]]:
    told: list[str] = []
    made = Visitor(
        "operator", str(token or ""), "", lambda what, code: told.append(f"{what} {code}")
    )
    try:
        yield made, told
    finally:
        made.close()


@asynccontextmanager
async def sequencer(folder: Path, token: str) -> AsyncIterator[str]:
    """Its address."""
    stop, found = asyncio.Event(), asyncio.get_running_loop().create_future()
    settings = SequencerSettings(
        cluster="orders",
        data=str(folder / "data"),
        port=0,
        probe_port=-1,
        token=token,
        peer_token="nodes",
    )

    def ready(endpoint: Endpoint) -> None:
        found.set_result(endpoint)

    running = asyncio.create_task(serve(settings, ready, stop=stop))
    try:
        await asyncio.wait((running, found), return_when=asyncio.FIRST_COMPLETED)
        yield found.result().address
    finally:
        stop.set()
        await running


def test_a_log_that_does_not_answer_is_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_client, "VISIT_S", 0.2)

    async def run() -> Visited:
        async with visiting() as (asker, told):
            url = f"belfast://127.0.0.1:{free_ports(1)[0]}/orders"
            found = await asker.visit(Visit(LOG, "u", url))
            assert told[0].startswith("Visit ")
            return found

    found = asyncio.run(run())
    assert (found.ref, found.uid, found.report) == (LOG, "u", None)
    assert "127.0.0.1" in found.why


def test_a_log_tells_how_it_is_and_does_not_let_go_of_strangers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for limit in ("VISIT_S", "MOVE_S"):
        monkeypatch.setattr(log_client, limit, PATIENCE_S)
    token = tmp_path / "token"
    token.write_text("secret\n")

    async def run() -> None:
        async with sequencer(tmp_path, "secret") as address, visiting(token) as (asker, told):
            url = f"belfast://{address}/orders"
            found = await asker.visit(Visit(LOG, "u", url))
            assert found.report is not None, found.why
            assert found.report.leader == address
            assert found.report.shards == ()
            for kind in (LeaveShard, JoinShard):
                outcome = await asker.move(kind(log=LOG, url=url, shard="orders-7"))
                assert isinstance(outcome, Refused)
                assert outcome.code == UnknownShard.code
            refused = [f"{each} {UnknownShard.code}" for each in ("LeaveShard", "JoinShard")]
            assert told == ["Visit done", *refused]

    asyncio.run(run())


@asynccontextmanager
async def erwin_log(folder: Path) -> AsyncIterator[str]:
    """One sequencer and one shard with one replica, by the address of the sequencer."""
    stop = asyncio.Event()
    node = f"127.0.0.1:{free_ports(1)[0]}"
    common: dict[str, Any] = {
        "engine": LogEngine.ERWIN,
        "cluster": "orders",
        "probe_port": -1,
        "token": "secret",
        "peer_token": "nodes",
    }
    running = [
        asyncio.create_task(
            serve(
                SequencerSettings(
                    data=str(folder / "sequencer"),
                    port=int(node.rpartition(":")[2]),
                    members=(node,),
                    **common,
                ),
                stop=stop,
            )
        ),
        asyncio.create_task(
            shard.serve(
                ShardSettings(
                    data=str(folder / "shard"),
                    port=0,
                    shard="orders-0",
                    sequencers=(node,),
                    **common,
                ),
                stop=stop,
            )
        ),
    ]
    try:
        yield node
    finally:
        stop.set()
        await asyncio.gather(*running)


def test_an_erwin_log_tells_how_it_is_and_lets_go_of_no_stranger(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_client, "VISIT_S", PATIENCE_S)
    token = tmp_path / "token"
    token.write_text("secret\n")

    async def run() -> None:
        async with erwin_log(tmp_path) as node, visiting(token) as (asker, _):
            url = f"erwin://{node}/orders"
            async with asyncio.timeout(PATIENCE_S):
                while True:
                    found = (await asker.visit(Visit(LOG, "u", url))).report
                    if found is not None and found.settled is not None:
                        break
                    await asyncio.sleep(0.05)
            assert (found.leader, found.view, found.reached) == (node, 1, (node,))
            ((name, standing),) = [(each.name, each.standing) for each in found.shards]
            assert (name, standing) == ("orders-0", Standing.SEATED)
            assert found.shards[0].silent == ()
            assert found.sequencing is not None
            assert (found.sequencing.tail, found.sequencing.backlog) == (0, 0)
            for kind in (LeaveShard, JoinShard):
                outcome = await asker.move(kind(log=LOG, url=url, shard="orders-7"))
                assert isinstance(outcome, Refused)
                assert outcome.code == UnknownShard.code
            assert await asker.move(JoinShard(log=LOG, url=url, shard="orders-0")) is None

    asyncio.run(run())


def test_what_was_refused_until_time_ran_out_is_told_by_its_reason(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Slow:
        async def ask(self, *_: object) -> None:
            error = DeadlineExceeded("JoinShard", 10_000)
            raise error from CantJoin("orders-1", "its disks are lost")

        def close(self) -> None:
            pass

    monkeypatch.setattr(Visitor, "_link", lambda *_: Slow())

    async def run() -> object:
        async with visiting() as (asker, _):
            return await asker.move(JoinShard(log=LOG, url="belfast://a/orders", shard="orders-1"))

    outcome = asyncio.run(run())
    assert isinstance(outcome, Refused)
    assert "its disks are lost" in outcome.message


def test_who_shows_another_token_is_not_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_client, "VISIT_S", 5.0)
    token = tmp_path / "token"
    token.write_text("another")

    async def run() -> Visited:
        async with sequencer(tmp_path, "secret") as address, visiting(token) as (asker, told):
            found = await asker.visit(Visit(LOG, "u", f"belfast://{address}/orders"))
            assert told != [f"Visit {Unavailable.code}"]
            return found

    assert asyncio.run(run()).report is None
