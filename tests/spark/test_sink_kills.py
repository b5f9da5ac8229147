"""Streams into a log whose drivers and Python workers are killed, 40 times in all.

Campaigns of hundreds of kills are run by hand: `python -m tests.spark.sink_campaign`.
"""

import os
import shutil
from importlib.util import find_spec
from pathlib import Path

import pytest
from tests.integration.cli_server import Server
from tests.spark.sink_campaign import Campaign

KILLS, FILES, WITHIN_S = 10, 40, 900.0


@pytest.mark.nightly
@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("mode", ["direct", "fork"])
def test_whatever_is_killed_each_record_is_in_the_log_once(
    tmp_path: Path, mode: str, seed: int
) -> None:
    if find_spec("pyspark") is None:
        pytest.skip("pyspark isn't installed: pip install anabranch[spark]")
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        pytest.skip("no Java on this machine: Spark needs 17 or 21")
    with Server.started(tmp_path / "service") as server:
        tally = Campaign(tmp_path, mode, kills=KILLS, files=FILES, seed=seed).run(
            server.url, WITHIN_S
        )
    assert tally.kills >= KILLS, f"there wasn't time for more: {tally}"
    assert tally.drivers, "drivers were killed"
    assert tally.forgotten, "a last commit was forgotten"
