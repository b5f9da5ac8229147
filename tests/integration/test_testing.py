"""The server that programs are tested against: in memory, with a clock that can be moved."""

import asyncio
import re
from datetime import timedelta
from pathlib import Path

import pytest

import anabranch
from anabranch import aio, testing
from anabranch.core.errors import BadRequest, Squashed, Unavailable


def test_what_there_was_at_a_time_can_be_asked_for_without_waiting() -> None:
    with testing.server() as server, anabranch.connect(server.url) as service:
        orders = service.create("orders")
        orders.append(b"early")
        between = server.advance(3_600)
        orders.append(b"late")
        server.advance(0.001)
        for at, count in ((between, 1), (between - timedelta(hours=1, minutes=1), 0)):
            assert orders.position_at(at) == count
            assert orders.sfork(at=at).tail() == count
        assert orders.sfork(at=server.time).tail() == 2
        late, *_ = orders.read(1)
        assert late.timestamp < between.timestamp() * 1_000, "a client stamps by its own clock"
        orders.append(b"stamped", timestamp=between)
        *_, stamped = orders.read(2)
        assert stamped.timestamp == round(between.timestamp() * 1_000)
        with pytest.raises(ValueError, match="only goes forward"):
            server.advance(-1)


def test_a_fork_expires_when_the_clock_was_moved_past_its_time() -> None:
    with testing.server() as server, anabranch.connect(server.url) as service:
        fork = service.create("orders").cfork("try", ttl=600)
        server.advance(601)
        with pytest.raises(Squashed):
            fork.append(b"too late")


def test_two_servers_know_nothing_of_one_another() -> None:
    with testing.server() as one, testing.server() as other:
        with anabranch.connect(one.url) as service:
            service.create("orders")
        with anabranch.connect(other.url) as service:
            assert list(service.logs()) == []
        one.advance(3_600)
        assert other.time < one.time


def test_a_client_is_closed_without_waiting_for_a_server_that_is_gone() -> None:
    with testing.server() as server:
        service = anabranch.connect(server.url)
        orders = service.create("orders")
    pending = [orders.append_nowait(b"%d" % number) for number in range(3)]
    service.close(wait=False)
    for each in pending:
        with pytest.raises(Unavailable, match="closed"):
            each.result()
    service.close()


def test_an_asyncio_client_is_closed_without_waiting_too() -> None:
    async def close(service: aio.Service, orders: aio.Log) -> None:
        pending = orders.append_nowait(b"pending")
        await service.close(wait=False)
        with pytest.raises(Unavailable, match="closed"):
            await pending

    with asyncio.Runner() as runner:
        with testing.server() as server:
            service = runner.run(aio.connect(server.url).opened())
            orders = runner.run(service.create("orders"))
        runner.run(close(service, orders))


def test_a_receipt_is_redeemed_by_another_client_from_its_text() -> None:
    with testing.server() as server:
        with anabranch.connect(server.url) as service:
            orders = service.create("orders")
            fork = orders.cfork("try", promotable=True)
            fork.append(b"first")
            withheld = orders.append(b"second").receipt
            assert withheld is not None
            kept = str(withheld)
            fork.promote()
        with anabranch.connect(server.url) as service:
            assert service.receipt(kept).position(timeout=30) == 1
            assert str(service.receipt(kept)) == kept
            for text in ("", "1.0", "1.0.x", "1.0.-1", "1.0.1.2", f"1.0.{1 << 53}", "1" * 5_000):
                with pytest.raises(BadRequest, match="receipt"):
                    service.receipt(text)
        asyncio.run(_redeemed(server.url, kept))


async def _redeemed(url: str, kept: str) -> None:
    async with aio.connect(url) as service:
        assert await service.receipt(kept).position(timeout=30) == 1


def test_the_reference_shows_a_test_that_runs(root: Path) -> None:
    page = (root / "docs" / "reference" / "client.md").read_text()
    (block,) = re.findall(r"## Test a program\n.*?```python\n(.*?)```", page, re.DOTALL)
    exec(block, {})
