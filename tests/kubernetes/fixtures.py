"""A real Kubernetes for tests: a module that wants it imports these fixtures by name.

`from tests.kubernetes.fixtures import api_server  # noqa: F401`, or its folder's conftest does.
All workers of a run share one of each; a test has a namespace of its own there. A test that
harms a server starts a `ControlPlane` itself, by `own_api_server`.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.kubernetes.api_server import ApiServer
from tests.kubernetes.binaries import program, stands_in_the_way
from tests.kubernetes.control_plane import API_SERVER, CONTROLLERS, ControlPlane
from tests.kubernetes.keeper import shared


def needs(*programs: str) -> None:
    """Skip what can't be tried here for want of a program."""
    stands = stands_in_the_way(*programs)
    if stands is not None:
        pytest.skip(stands)
    for name in programs:
        program(name)  # now, and not while somebody looks at the clock


@pytest.fixture(scope="session")
def api_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """API server and etcd: nobody acts on what is written there but the test."""
    needs(*API_SERVER)
    with shared(_run(tmp_path_factory) / "api-server") as server:
        yield server


@pytest.fixture(scope="session")
def control_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """With all controllers, the scheduler, and three nodes whose pods kwok pretends to run."""
    needs(*API_SERVER, *CONTROLLERS, "kwok")
    with shared(_run(tmp_path_factory) / "control-plane", controllers=True) as server:
        yield server


@pytest.fixture
def own_api_server(tmp_path: Path) -> Iterator[ControlPlane]:
    """One that this test may pause, end and start again."""
    needs(*API_SERVER)
    plane = ControlPlane(tmp_path / "plane")
    try:
        plane.start()
        yield plane
    finally:
        plane.kill()


@pytest.fixture
def namespace(api_server: ApiServer) -> str:
    """Of this test alone, at `api_server`."""
    return api_server.namespace()


def _run(made_by: pytest.TempPathFactory) -> Path:
    """The folder that all workers of a run have in common."""
    own = made_by.getbasetemp()
    return own.parent if "PYTEST_XDIST_WORKER" in os.environ else own
