"""Commands of this process, and a service in its memory that they talk to."""

from collections.abc import Iterator
from pathlib import Path
from zlib import crc32

import pytest
from tests.commands import Command, command_runner

from anabranch import testing


@pytest.fixture(scope="session")
def service() -> Iterator[testing.Server]:
    """One for all tests: each makes logs of its own."""
    with testing.server() as server:
        yield server


@pytest.fixture
def anabranch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]
) -> Command:
    """Run a command that finds no service and no profiles but those that it is given."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("LOGNAME", "tester")
    return command_runner(monkeypatch, capsysbinary)


@pytest.fixture
def ask(service: testing.Server, anabranch: Command, monkeypatch: pytest.MonkeyPatch) -> Command:
    """Run a command that talks to the service."""
    monkeypatch.setenv("ANABRANCH_URL", service.url)
    return anabranch


@pytest.fixture
def log(request: pytest.FixtureRequest, ask: Command) -> str:
    """An empty log of the test's own."""
    name = f"log-{crc32(str(request.node.nodeid).encode())}"
    ask("log", "create", name)
    return name


@pytest.fixture(scope="session")
def ticks(service: testing.Server) -> str:
    """A Belfast log of two shards, which all tests share."""
    import anabranch

    with anabranch.connect(service.url) as found:
        log = found.create("ticks", engine="belfast", shards=2)
        while len(log.status().shards) < 2:
            pass  # they are started in the background; each question takes a round trip
        return log.name


@pytest.fixture(scope="session")
def audit(service: testing.Server) -> str:
    """An Erwin log of two shards, which all tests share."""
    import anabranch

    with anabranch.connect(service.url) as found:
        log = found.create("audit", engine="erwin", shards=2, sequencers=2, durability="memory")
        log.append_sync(b"first")
        return log.name
