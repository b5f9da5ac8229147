"""A real server in memory for a worker's whole session, and a network that loses things."""

from collections.abc import Iterator
from itertools import count

import pytest
from tests.unit.client.lossy import Network, network

import anabranch
from anabranch import testing
from anabranch.client.driver.loop import LoopThread

_numbers = count()


@pytest.fixture(scope="session")
def server() -> Iterator[testing.Server]:
    with testing.server() as server:
        yield server


@pytest.fixture
def service(server: testing.Server) -> Iterator[anabranch.Service]:
    with anabranch.connect(server.url) as service:
        yield service


@pytest.fixture
def name() -> str:
    """Of a log that nobody else uses."""
    return f"log-{next(_numbers)}"


@pytest.fixture
def lossy(server: testing.Server) -> Iterator[tuple[Network, LoopThread]]:
    """In front of the server, and the thread that it lives on."""
    with network(server.url) as made:
        yield made
