"""The guide to running a cluster: its file is taken, its processes start, its commands say that."""

import re
import shlex
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.integration.cli_server import ANABRANCH, bare, check_page
from tests.servers import bucket_of, etcd, s3

from anabranch.apps.processes.ports import free_ports
from anabranch.apps.processes.servers import EtcdServer, S3Server, ServerProcess, answers

__all__ = ["etcd", "s3"]

PORTS = ("7430", "7431", "7440", "7441", "7450", "7451", "7420", "7422", "7460", "7462", "7421")
ROW = re.compile(r"^\| (`[a-z][^|_]*`) \| ", re.MULTILINE)


@pytest.fixture(scope="module")
def page(root: Path) -> str:
    return (root / "docs" / "howto" / "cluster.md").read_text()


@pytest.fixture
def here(page: str, etcd: EtcdServer, s3: S3Server) -> str:
    """The page, with what is to be had here in the places of its addresses and keys."""
    bucket = bucket_of(s3)
    shown = {
        "127.0.0.1:2379": etcd.address,
        "http://127.0.0.1:9000": s3.endpoint,
        '"logs"': f'"{bucket.bucket}"',
        '"KEY"': f'"{bucket.access_key}"',
        '"SECRET"': f'"{bucket.secret_key}"',
        '"production"': f'"{bucket.bucket}"',
    }
    for name, found in shown.items():
        assert name in page, name
        page = page.replace(name, found)
    found_ports = [str(port) for port in free_ports(len(PORTS))]
    ports: dict[str, str] = dict(zip(PORTS, found_ports, strict=True))
    return re.sub(r"(?<=[ :])74\d\d\b", lambda port: ports[port[0]], page)


class Shown(ServerProcess):
    """A command of the page; the last port that it names is asked whether it is ready."""

    def __init__(self, command: str, folder: Path) -> None:
        name, *told = shlex.split(command)
        assert name == "anabranch"
        self._probes = int(told[-1])
        label = "-".join(each for each in told if re.fullmatch(r"[a-z]+(-\d)?", each))
        # A machine that is busy with other things may take its time.
        environment = {**bare(), "ANABRANCH_PATIENCE_MS": "60000"}
        super().__init__(label, [*ANABRANCH, *told], folder, self._is_ready, environment)

    def _is_ready(self) -> bool:
        return answers(self._probes, "/readyz") == 200


@pytest.fixture
def cluster(here: str, tmp_path: Path) -> Iterator[list[Shown]]:
    file, *_ = re.findall(r"```toml\n(cluster = .*?)```", here, re.DOTALL)
    (tmp_path / "cluster.toml").write_text(file)
    commands = re.findall(r"^anabranch \w+ --config cluster.toml --.*$", here, re.MULTILINE)
    with ExitStack() as stack:
        started = [Shown(command, tmp_path) for command in commands]
        for process in started:
            process.launch()
            stack.callback(process.kill)
        for process in started:
            process.wait_ready()
        yield started


def test_the_page_runs_a_cluster_and_says_what_happens(
    here: str, cluster: list[Shown], tmp_path: Path
) -> None:
    assert len(cluster) == 6
    (url,) = re.findall(r"^export ANABRANCH_URL=(anabranch://.*)$", here, re.MULTILINE)
    command = tmp_path / "anabranch"
    command.write_text(f'#!/bin/sh\nexec {shlex.join(ANABRANCH)} "$@"\n')
    command.chmod(0o700)
    path = f"{tmp_path}:{bare()['PATH']}"
    assert check_page(here, {**bare(), "PATH": path, "ANABRANCH_URL": url}) == 5


def test_every_log_line_that_the_page_tells_of_is_logged(page: str, root: Path) -> None:
    _, _, told = page.partition("| `event` | means |")
    rows = ROW.findall(told.partition("\n\n")[0])
    events = [event for row in rows for event in re.findall(r"`([^`]+)`", row)]
    assert len(events) > 15
    found = [each.read_text() for each in (root / "services" / "anabranch").rglob("*.py")]
    # A line about a member or a broker may be written with the noun to be filled in.
    sources = [re.sub(r"\{[^{}]+\}", "{}", source) for source in found]
    for event in events:
        spelled = (event, *(event.replace(noun, "{}") for noun in ("member", "broker")))
        assert any(f'"{each}"' in source for each in spelled for source in sources), event
