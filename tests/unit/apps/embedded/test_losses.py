"""Which journals that are gone keep a log from being served."""

import shutil
from pathlib import Path

import pytest

from anabranch.apps.belfast.engine import BELFAST_JOURNALS
from anabranch.apps.embedded.folders import Folders, LogFolder
from anabranch.apps.embedded.losses import losses, refusal
from anabranch.core.types import LogId
from anabranch.shell.journal.watermark import Watermark

TICKS = LogFolder(LogId(7), 1_700_000_000_000, "ticks", "belfast")
SEQUENCERS = ("sequencer-0", "sequencer-1", "sequencer-2")
SHARDS = ("shard-0-0", "shard-0-1", "shard-10-0", "shard-10-1")


@pytest.fixture
def folders(tmp_path: Path) -> Folders:
    folders = Folders(str(tmp_path))
    folders.make(TICKS)
    for node in (*SEQUENCERS, *SHARDS):
        folders.note(TICKS, node).create(Watermark(9, lives=0))
        journal = Path(folders.path(TICKS, node))
        journal.mkdir()
        (journal / "0000000001.segment").touch()
    return folders


@pytest.mark.parametrize(
    ("gone", "refilled"),
    [
        ((), ()),
        (("sequencer-1",), ("sequencer-1",)),
        (("sequencer-0", "sequencer-2"), ()),
        (("shard-0-1", "shard-10-0"), ("shard-0-1", "shard-10-0")),
        (("shard-0-0", "shard-0-1"), ()),
        (("sequencer-0", "shard-10-0", "shard-10-1"), ("sequencer-0",)),
    ],
)
def test_a_majority_of_sequencers_and_one_replica_of_a_shard_fill_the_others(
    folders: Folders, gone: tuple[str, ...], refilled: tuple[str, ...]
) -> None:
    for node in gone:
        shutil.rmtree(folders.path(TICKS, node))
    found = losses(folders, TICKS, BELFAST_JOURNALS)
    assert found.refilled == refilled
    assert set(found.lost) == set(gone) - set(refilled)


def test_a_refusal_names_what_is_missing_and_both_ways_out(folders: Folders) -> None:
    shutil.rmtree(folders.path(TICKS, "shard-0-0"))
    shutil.rmtree(folders.path(TICKS, "shard-0-1"))
    (Path(folders.data) / "reached" / TICKS.name / "shard-0-0").write_bytes(b"?")
    for lost, proof in ((("shard-0-1",), "entry 9"), (("shard-0-0", "shard-0-1"), "intact")):
        said = refusal(folders, TICKS, lost).message
        assert proof in said
        assert all(node in said for node in lost)
        assert folders.log_path(TICKS) in said
        assert "--accept-loss" in said
