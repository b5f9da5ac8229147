"""A scan that lasts long beyond the grace of garbage misses nothing, and holds nothing after it."""

import os
from pathlib import Path

import pytest
from tests.servers import needs
from tests.spark.long_scan import EXTENTS, RECORDS, run

from anabranch.apps.processes.binaries import ETCD, VERSITYGW

SECONDS = float(os.environ.get("ANABRANCH_SCAN_S", "180"))
"""The bar is half an hour, 1800; the night takes less."""


@pytest.mark.nightly
def test_a_long_scan_beside_compaction_trim_and_squash_reads_each_record_once(
    tmp_path: Path,
) -> None:
    needs(ETCD, VERSITYGW)
    tally = run(tmp_path / "cluster", SECONDS)
    assert tally.records == 4 * EXTENTS * RECORDS, "the fork has its parent's, too"
    assert tally.appends, "somebody appended beside it"
    assert tally.squashed
    assert tally.held_most, "the plans held garbage back"
    assert tally.gone, "when they had ended, it went"
