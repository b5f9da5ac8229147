"""Erwin logs of `anabranch up --processes`: as the page shows them, over a restart, and deleted."""

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from typing import Literal

import pytest
from tests.documents import blocks
from tests.integration.belfast.deployment import served
from tests.integration.cli_server import ANABRANCH, bare, command_in
from tests.integration.erwin.deployment import SOON
from tests.integration.server_process import running
from tests.servers import needs

import anabranch
from anabranch.apps.processes.binaries import ETCD, VERSITYGW
from anabranch.core.errors import Unavailable

PATIENCE_S = 120.0
SMALL = ("--metadata", "1", "--brokers", "1", "--no-http")


@contextmanager
def cluster(folder: Path) -> Iterator[str]:
    """Its URL. A process that is back is taken in at once. It is told to end, and does."""
    needs(ETCD, VERSITYGW)
    output = folder / f"up-{len(list(folder.glob('up-*')))}"
    command = [*ANABRANCH, "up", "--processes", "--data", str(folder / "data"), *SMALL]
    with output.open("wb") as log:
        process = subprocess.Popen(
            [*command, "--log-format", "json"], env={**bare(), **SOON}, stdout=log, stderr=log
        )
    try:
        yield served(process, output)
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE_S) == 0, output.read_text()
    finally:
        process.kill()
        process.wait()


def test_the_commands_of_the_page_do_what_it_says(root: Path, tmp_path: Path) -> None:
    (shown,) = (
        block.text
        for block in blocks(root)
        if block.page == "docs/howto/erwin.md" and "log create trail" in block.text
    )
    with cluster(tmp_path) as url:
        path = f"{command_in(tmp_path)}:{bare()['PATH']}"
        ended = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", shown],
            env={**bare(), "PATH": path, "ANABRANCH_URL": url},
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        assert ended.returncode == 0, ended.stderr
        assert "to trail at 0..1" in ended.stdout
        assert ended.stdout.count("there\n") == 3, "three sequencers"
        assert "shard-0 takes new records" in ended.stdout


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("mode", "durability"), [("m", "fsync"), ("st", "fsync"), ("m", "memory"), ("st", "memory")]
)
def test_a_log_keeps_its_records_over_a_restart_and_goes_with_its_name(
    tmp_path: Path, mode: Literal["m", "st"], durability: Literal["fsync", "memory"]
) -> None:
    with cluster(tmp_path) as url, anabranch.connect(url, timeout=PATIENCE_S) as service:
        audit = service.create("audit", engine="erwin", mode=mode, durability=durability)
        assert audit.append_sync(b"before", timeout=PATIENCE_S) == 0
        assert len(audit.survey().sequencers) == 3
        audit.add_shards()
        while len([each for each in audit.survey().shards if each.epoch]) < 2:
            audit.append(b"more", timeout=PATIENCE_S)
        assert audit.append_sync(b"more", timeout=PATIENCE_S) > 0
    with cluster(tmp_path) as url, anabranch.connect(url, timeout=PATIENCE_S) as service:
        audit = service.ensure("audit", engine="erwin")
        # In memory, an append may be sent in the view that ended with its members.
        again = durability == "memory"
        audit.append_sync(b"after", retry_unknown=again, timeout=PATIENCE_S)
        assert [each.value for each in audit.read(0)][:1] == [b"before"]
        assert [each.value for each in audit.read(0)][-1] == b"after"
        folder = tmp_path / "data" / "erwin"
        assert len(os.listdir(folder)) == 1
        service.delete("audit", timeout=PATIENCE_S)
        _until_empty(folder)


@pytest.mark.nightly
def test_a_log_whose_shards_keep_their_records_in_a_bolt_log_is_there_after_a_restart(
    tmp_path: Path,
) -> None:
    with running(tmp_path / "bolt") as bolt:
        server = f"anabranch://127.0.0.1:{bolt.port}"
        with cluster(tmp_path) as url, anabranch.connect(url, timeout=PATIENCE_S) as service:
            audit = service.create("audit", engine="erwin", black_box=f"{server}/audit")
            assert audit.append_sync(b"one", timeout=PATIENCE_S) == 0
            assert audit.description.settings is not None
            assert audit.description.settings.replicas == 1, "the black box replicates"
            with pytest.raises(Unavailable, match="are being started"):
                service.create("other", engine="erwin", black_box=f"{server}/audit", timeout=1)
            _until_said(tmp_path / "up-0", "name another one, which is empty")
        with cluster(tmp_path) as url, anabranch.connect(url, timeout=PATIENCE_S) as service:
            audit = service.ensure("audit", engine="erwin")
            assert audit.append_sync(b"two", timeout=PATIENCE_S) == 1
            assert [each.value for each in audit.read(0)] == [b"one", b"two"]
            assert not list((tmp_path / "data" / "erwin").glob("*/*shard*/data/journal/*"))
        with anabranch.connect(server) as keeper:
            assert keeper.log("audit-0").tail() > 0


def _until_said(output: Path, words: str) -> None:
    pause = Event()
    for _ in range(int(PATIENCE_S / 0.1)):
        if words in output.read_text():
            return
        pause.wait(0.1)
    raise AssertionError(f"{words!r} isn't in {output.read_text()}")


def _until_empty(folder: Path) -> None:
    pause = Event()
    for _ in range(int(PATIENCE_S / 0.1)):
        if not os.listdir(folder):
            return
        pause.wait(0.1)
    raise AssertionError(f"{os.listdir(folder)} is still there")
