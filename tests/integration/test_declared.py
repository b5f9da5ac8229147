"""Logs that somebody declares, programs that take turns, brokers that are taken out of a pool."""

import asyncio
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest
from tests.integration.pool import PATIENCE_S, Pool, pooled

import anabranch
from anabranch import aio
from anabranch.core.errors import (
    BrokerInUse,
    Deposed,
    OwnedByAnother,
    OwnsAnother,
    Squashed,
    UnknownBroker,
)
from anabranch.core.limits import Limits

ANN, BOB = "k8s/team/Log/orders/1", "k8s/team/Fork/what-if/2"
PATIENT = Limits(alive_ms=50, silence_ms=round(PATIENCE_S * 1_000))
"""None of these brokers is silent for so long."""


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    with pooled(3, limits=PATIENT) as pool:
        yield pool


@pytest.fixture
def service(pool: Pool) -> Iterator[anabranch.Service]:
    with anabranch.connect(pool.url, timeout=PATIENCE_S) as service:
        for root in [each for each in service.logs() if each.parent is None]:
            service.delete(root.name, force=True)
        yield service


def until(holds: Callable[[], bool]) -> None:
    """Every look asks the service something, which is all the pause there is."""
    while not holds():
        pass


def command(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "anabranch.cli.main", *words],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )


def test_what_is_declared_is_made_once_and_found_by_who_declares_it(
    service: anabranch.Service,
) -> None:
    orders = service.create("orders", owner=ANN)
    assert service.create("again", owner=ANN).id == orders.id
    fork = orders.cfork("what-if", owner=BOB, promotable=True)
    assert orders.sfork("another", owner=BOB).id == fork.id
    assert [each.name for each in service.logs(owner="k8s/team/")] == [orders.name, fork.name]
    assert [each.name for each in service.logs(owner=BOB)] == [fork.name]
    assert service.log(fork.id).describe().owner == BOB
    fork.squash()
    with pytest.raises(Squashed):
        orders.cfork("what-if", owner=BOB)


def test_a_log_is_adopted_and_released(service: anabranch.Service) -> None:
    first, second = "k8s/team/Log/plain/4", "k8s/team/Log/plain/5"
    plain = service.create("plain")
    assert service.adopt(plain, first).owner == first
    with pytest.raises(OwnedByAnother):
        service.adopt("plain", second)
    other = service.create("other")
    with pytest.raises(OwnsAnother):
        service.adopt(other, first)
    assert service.release("plain").owner == ""
    assert service.adopt(other, first).owner == first


async def _turns(url: str) -> None:
    async with (
        aio.connect(url, timeout=PATIENCE_S) as earlier,
        aio.connect(url, timeout=PATIENCE_S) as later,
    ):
        earlier.guard("tests", 1)
        orders = await earlier.create("orders")
        fork = await orders.cfork("what-if")
        later.guard("tests", 2)
        await later.create("more")
        for late in (fork.squash(), earlier.create("late"), orders.trim(0), earlier.delete(orders)):
            with pytest.raises(Deposed, match="tests is led by another since term 1 ended"):
                await late
        assert (await orders.append(b"a")).position == 0
        assert (await fork.describe()).tail == 1
        earlier.guard("tests", 3)
        await fork.squash()
        with pytest.raises(Deposed):
            await later.create("late")


def test_who_was_followed_by_another_changes_nothing_more(
    pool: Pool, service: anabranch.Service
) -> None:
    asyncio.run(_turns(pool.url))
    assert [each.name for each in service.logs()] == ["more", "orders"]


def test_a_drained_broker_serves_on_until_it_is_forgotten_and_then_begins_anew(
    pool: Pool, service: anabranch.Service
) -> None:
    orders = service.create("orders")
    name = orders.description.broker
    seats = {seat.name: seat for seat in service.brokers()}
    with pytest.raises(BrokerInUse):
        service.forget_broker(name)
    with pytest.raises(UnknownBroker):
        service.drain_broker(name, seats[name].epoch + 1)
    with pytest.raises(UnknownBroker):
        service.drain_broker("nobody")
    shown = command("brokers", "drain", name, "--url", pool.url)
    assert (shown.returncode, shown.stdout) == (
        0,
        f"{name} is draining: no logs are placed on it any more\n",
    )
    assert {seat.name: seat.state for seat in service.brokers()}[name] == "draining"
    assert orders.describe().broker != name
    (drained,) = [each for each in pool.brokers if each.node == name]
    with anabranch.connect(f"anabranch://{drained.address}", timeout=PATIENCE_S) as there:
        log = there.log("orders")
        assert [log.append(b"%d" % each).position for each in range(3)] == [0, 1, 2]
        assert command("brokers", "forget", name, "--url", pool.url).returncode == 0
        assert name not in [seat.name for seat in service.brokers()]
        assert log.append(b"3").position == 3
    pool.kill(drained)
    pool.revive(drained)
    until(lambda: {seat.name for seat in service.brokers() if seat.state == "ready"} == {*seats})


def test_the_command_line_shows_who_declares_a_log(pool: Pool, service: anabranch.Service) -> None:
    owner = "k8s/team/Log/shown/3"
    service.create("orders", owner=owner)
    shown = command("log", "show", "orders", "--url", pool.url).stdout
    assert ["declared", "by", owner] in [line.split() for line in shown.splitlines()]
    listed = command("brokers", "--url", pool.url, "-o", "json").stdout
    assert listed == command("brokers", "list", "-o", "json", "--url", pool.url).stdout
    assert "forget" in command("brokers", "--help").stdout
    refused = command("brokers", "forget", "nobody", "--url", pool.url)
    assert refused.returncode == 1
    assert "there is no broker nobody" in refused.stderr
