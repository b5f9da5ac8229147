"""What tests of real processes and disks share."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.integration.loop_disk import LoopDisk


@pytest.fixture
def loop(tmp_path: Path) -> Iterator[LoopDisk]:
    obstacle = LoopDisk.obstacle()
    if obstacle is not None:
        pytest.skip(obstacle)
    disk = LoopDisk(tmp_path)
    try:
        disk.attach()
    except subprocess.CalledProcessError as refused:
        pytest.skip(f"no loop device can be mounted here: {refused.stderr.decode().strip()}")
    yield disk
    disk.detach()
