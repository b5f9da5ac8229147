"""One server for the tests of all commands, and commands that are run in this process."""

from collections.abc import Iterator
from pathlib import Path
from zlib import crc32

import pytest
from tests.commands import Command, command_runner
from tests.integration.cli_server import Server


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with Server.started(tmp_path_factory.mktemp("server"), http=True) as server:
        yield server


@pytest.fixture
def anabranch(
    server: Server,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsysbinary: pytest.CaptureFixture[bytes],
) -> Command:
    """Run a command in this process; `stdin` is what it is given."""
    monkeypatch.setenv("ANABRANCH_URL", server.url)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("LOGNAME", "tester")

    return command_runner(monkeypatch, capsysbinary)


@pytest.fixture
def log(request: pytest.FixtureRequest) -> str:
    """A name that no other test uses."""
    name = str(request.node.name)
    return f"{name[:40].partition('[')[0].replace('_', '-')}.{crc32(name.encode())}"
