"""The HTTP front of a service in memory, and a client of it."""

from collections.abc import Iterator

import httpx
import pytest

from anabranch import testing


@pytest.fixture(scope="session")
def service() -> Iterator[testing.Server]:
    """One for all tests: each makes logs of its own."""
    with testing.server() as server:
        yield server


@pytest.fixture(scope="session")
def http(service: testing.Server) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=service.http, timeout=30) as client:
        yield client
