"""What clients are told of a cluster a part of which is dead, or of another door of it."""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from typing import Any

import pytest
from tests.integration.faults.world import World

import anabranch
from anabranch.apps.processes.ports import HOST
from anabranch.core.errors import AnabranchError, DeadlineExceeded, OutcomeUnknown, Unavailable

DEADLINE_S = 1.0
TOLERANCE_S = 60.0
"""Beyond the deadline, on a machine however busy."""


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("dead")
    with World(folder, members=2, brokers=1, gateway=True) as world:
        with anabranch.connect(world.url, timeout=TOLERANCE_S) as service:
            service.create("orders").append(b"a")
        yield world


@contextmanager
def in_time() -> Iterator[None]:
    began = time.monotonic()
    yield
    assert time.monotonic() - began < DEADLINE_S + TOLERANCE_S


def refused(ask: Callable[[], object]) -> AnabranchError:
    with in_time(), pytest.raises(AnabranchError) as caught:
        ask()
    assert isinstance(caught.value, Unavailable | DeadlineExceeded | OutcomeUnknown)
    assert caught.value.message
    return caught.value


def connected(address: str) -> None:
    with anabranch.connect(f"anabranch://{address}", timeout=DEADLINE_S) as service:
        list(service.logs())


def posted(world: World, **headers: str) -> tuple[int, dict[str, Any]]:
    """An append by HTTP."""
    connection = HTTPConnection(HOST, world.gateways[0].port, timeout=TOLERANCE_S)
    try:
        told = {"Content-Type": "application/octet-stream", "Deadline-Ms": "1000"}
        connection.request("POST", "/v1/logs/orders/records", b"x", told | headers)
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())
    finally:
        connection.close()


def test_every_wrong_door_is_told(world: World) -> None:
    probes = world.brokers[0].endpoint.probes
    assert probes is not None
    doors = {
        "the metadata's": world.members[0].address,
        "the gateway's": f"{HOST}:{world.gateways[0].port}",
        "the probes'": probes,
        "etcd's": world.etcd.addresses[0],
        "the store's": world.s3.address,
    }
    for address in doors.values():
        assert address in refused(lambda address=address: connected(address)).message


@pytest.mark.parametrize("how", ["killed", "asleep"])
@pytest.mark.parametrize("part", ["metadata", "broker", "etcd", "store"])
def test_a_dead_part_is_told_within_the_deadline_and_no_more_when_it_is_back(
    world: World, part: str, how: str
) -> None:
    processes = {
        "metadata": world.members,
        "broker": world.brokers,
        "etcd": world.etcd.members,
        "store": [world.s3],
    }[part]
    with anabranch.connect(world.url, timeout=TOLERANCE_S) as service:
        orders = service.log("orders")
        orders.append(b"before")
        for each in processes:
            each.kill() if how == "killed" else each.pause()
        try:
            refused(lambda: orders.append(b"during", timeout=DEADLINE_S))
            with in_time():
                status, said = posted(world)
            assert status in {503, 504}, said
            # Repeated blindly, one that may have been done would be done twice, but for its key.
            assert said["advice"] == ("refresh" if said["code"] == "outcome-unknown" else "retry")
            assert said["detail"]
            with in_time():
                status, said = posted(world, **{"Idempotency-Key": f"{part}-{how}"})
            assert (status, said["advice"]) in {(503, "retry"), (504, "retry")}, said
            if part == "broker":
                refused(lambda: connected(world.links["client", "broker-0"].address))
        finally:
            for each in processes:
                each.launch() if how == "killed" else each.resume()
            for each in processes:
                each.wait_ready()
        end = orders.append(b"after", timeout=TOLERANCE_S).position
        assert end is not None
        values = [record.value for record in orders.read(0, end + 1)]
        assert values[0] == b"a"
        assert values[-1] == b"after"
