"""One server for the tests of all commands, and commands that are run in this process."""

import io
import sys
from collections.abc import Iterator
from pathlib import Path
from zlib import crc32

import pytest
from tests.integration.cli_server import Command, Said, Server

from anabranch.cli.failure import Exit, run
from anabranch.cli.main import PROGRAM, cli


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

    def command(*arguments: str, stdin: bytes = b"", code: int = Exit.OK) -> Said:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        left = run(cli, PROGRAM, arguments)
        said = capsysbinary.readouterr()
        assert left == code, said.err.decode()
        return Said(said.out.decode("utf-8", "surrogateescape"), said.err.decode())

    return command


@pytest.fixture
def log(request: pytest.FixtureRequest) -> str:
    """A name that no other test uses."""
    name = str(request.node.name)
    return f"{name[:40].partition('[')[0].replace('_', '-')}.{crc32(name.encode())}"
