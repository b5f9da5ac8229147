"""Which Belfast logs a new directory gets, and that none of them is empty by mistake."""

from pathlib import Path

import pytest

from anabranch.apps.belfast.engine import BELFAST_JOURNALS
from anabranch.apps.check.carry import carry
from anabranch.apps.embedded.folders import Folders, LogFolder
from anabranch.apps.embedded.losses import losses
from anabranch.core.bolt.protocol.commands import (
    FORMAT,
    CreateLog,
    EngineSettings,
    Entry,
    RaiseFormat,
)
from anabranch.core.bolt.state.replica import Replica
from anabranch.core.bolt.state.state import State
from anabranch.core.limits import Limits
from anabranch.core.types import LogId
from anabranch.shell.journal.watermark import Watermark

NODE = "shard-0-0"


@pytest.fixture
def replica() -> Replica:
    """Of three Belfast logs: `a`, `b`, `c`."""
    state = State("c", Limits())
    settings = EngineSettings(embedded=True)
    made = (CreateLog(name, engine="belfast", settings=settings) for name in "abc")
    for at, command in enumerate((RaiseFormat(FORMAT), *made), 1):
        state.apply(Entry(at, b"", command))
    return state.replica


def test_journals_and_notes_are_copied_and_a_log_without_either_is_not_served(
    tmp_path: Path, replica: Replica
) -> None:
    source, target = Folders(str(tmp_path / "old")), Folders(str(tmp_path / "new"))
    (tmp_path / "new").mkdir()
    a, b, c = (LogFolder.of(log) for log in replica.forest.foreign.values())
    stranger = LogFolder(LogId(99), 1, "stranger", "belfast")
    for folder in (a, stranger):
        path = Path(source.path(folder, NODE))
        path.mkdir(parents=True)
        (path / "0000000001.segment").write_bytes(b"entries")
    for folder in (a, b):
        source.note(folder, NODE).create(Watermark(7, lives=0))
    found = carry(source.data, target.data, replica)
    assert (found.whole, found.left_out, found.unknown) == (["a"], ["b", "c"], [stranger.name])
    assert (Path(target.path(a, NODE)) / "0000000001.segment").read_bytes() == b"entries"
    assert target.reached(a, NODE) == target.reached(b, NODE) == 7
    assert not losses(target, a, BELFAST_JOURNALS).lost
    assert losses(target, b, BELFAST_JOURNALS).lost
    assert losses(target, c, BELFAST_JOURNALS).lost
    assert stranger in target.found()
