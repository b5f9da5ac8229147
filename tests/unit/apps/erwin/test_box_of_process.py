"""A shard's data directory says where its records are, and stays with that."""

import asyncio
from pathlib import Path

import pytest

from anabranch.apps.erwin.box_of_process import ProcessBlackBox
from anabranch.apps.pods.log_node import journal
from anabranch.apps.pods.log_settings import LogEngine, ShardSettings
from anabranch.core.errors import BadRequest
from anabranch.shell.journal.data_dir import DataDir

LOOP = asyncio.new_event_loop()
LOOP.close()


def settings(data: Path, black_box: str = "") -> ShardSettings:
    return ShardSettings(
        cluster="c",
        engine=LogEngine.ERWIN,
        data=str(data),
        shard="s",
        sequencers=("q:1",),
        black_box=black_box,
    )


def test_a_shard_whose_records_are_in_a_black_box_never_begins_as_a_new_one(tmp_path: Path) -> None:
    in_box = settings(tmp_path, "anabranch://h:1/audit-0")
    directory = DataDir(str(tmp_path), "c")
    box = ProcessBlackBox(in_box)
    box.open(directory, LOOP).close()
    box.opened(directory)
    box.open(directory, LOOP).close()
    ProcessBlackBox(settings(tmp_path, "anabranch://moved:1/audit-0")).open(directory, LOOP).close()
    with pytest.raises(BadRequest, match="records of shard s are in anabranch audit-0, and stay"):
        ProcessBlackBox(settings(tmp_path, "anabranch://h:1/audit-1")).open(directory, LOOP)
    with pytest.raises(BadRequest, match="its records are in anabranch audit-0: say so"):
        journal(settings(tmp_path), directory)
    directory.close()


def test_records_of_a_journal_are_not_left_behind_for_a_black_box(tmp_path: Path) -> None:
    here = settings(tmp_path)
    directory = DataDir(str(tmp_path), "c")
    written = journal(here, directory)
    written.recover()
    written.append([b"an entry"])
    written.close()
    with pytest.raises(BadRequest, match="are in its own journal, and stay there"):
        ProcessBlackBox(settings(tmp_path, "kafka://h:1/t-0")).open(directory, LOOP)
    directory.close()
