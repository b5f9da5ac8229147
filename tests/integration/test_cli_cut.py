"""Cutting a journal of many segments and snapshots: what is kept, and what it costs."""

from pathlib import Path

import msgspec
import pytest

from anabranch.apps.check.cut import Plan, plan_cut
from anabranch.core.bolt.protocol.commands import CreateLog, Entry
from anabranch.core.errors import JournalCorrupt
from anabranch.shell.journal.disk import RealDisk
from anabranch.shell.journal.file_journal import FileJournal
from anabranch.shell.journal.replay import Replay, replay

CLUSTER = "test"
ENTRIES = 40


def entry(turn: int) -> bytes:
    return msgspec.msgpack.encode([Entry(turn, b"", CreateLog(f"log-{turn}", why="x" * 100))])


@pytest.fixture
def disk(tmp_path: Path) -> RealDisk:
    """Entries 1 to 40 in segments of about 4, no snapshot."""
    disk = RealDisk(str(tmp_path / "journal"))
    write(disk, 1, ENTRIES)
    return disk


def write(disk: RealDisk, first: int, last: int, snapshots: tuple[int, ...] = ()) -> None:
    journal = FileJournal(disk, CLUSTER, segment_bytes=1_000, ahead_bytes=512)
    journal.recover()
    for turn in range(first, last + 1):
        assert journal.append([entry(turn)]) == turn
        if turn in snapshots:
            journal.save_snapshot(turn, b"as of %d" % turn)
    journal.close()


def flip(disk: RealDisk, name: str, at: int) -> None:
    path = Path(disk.where, name)
    content = bytearray(path.read_bytes())
    content[at] ^= 1
    path.write_bytes(content)


def flip_entry(disk: RealDisk, name: bytes) -> None:
    for segment in segments(disk):
        content = Path(disk.where, segment).read_bytes()
        if name in content:
            flip(disk, segment, content.index(name))
            return
    raise AssertionError(f"no segment holds {name!r}")


def planned(disk: RealDisk) -> tuple[Plan, Replay]:
    with pytest.raises(JournalCorrupt) as damage:
        replay(disk, CLUSTER)
    return plan_cut(disk, CLUSTER, damage.value)


def segments(disk: RealDisk) -> list[str]:
    return [name for name in disk.names() if name.endswith(".segment")]


def test_what_comes_before_the_damage_is_kept_and_the_rest_is_counted(
    disk: RealDisk, tmp_path: Path
) -> None:
    names = segments(disk)
    assert len(names) > 5
    flip(disk, names[2], 400)
    plan, kept = planned(disk)
    assert kept.entries == [entry(turn) for turn in range(1, len(kept.entries) + 1)]
    assert plan.cut.kept == len(kept.entries)
    assert plan.cut.lost == ENTRIES - plan.cut.kept
    # The one that is damaged can't be read any more; all behind it can.
    assert plan.cut.commands == {"CreateLog": plan.cut.lost - 1}
    before = {path.name: path.read_bytes() for path in Path(disk.where).iterdir()}
    aside = Path(plan.perform(str(tmp_path), str(tmp_path / "objects"), []))
    assert replay(disk, CLUSTER).entries == kept.entries
    moved = {path.name: path.read_bytes() for path in (aside / "journal").iterdir()}
    assert moved == {name: before[name] for name in names[2:]}
    write(disk, plan.cut.kept + 1, plan.cut.kept + 10)
    assert len(replay(disk, CLUSTER).entries) == plan.cut.kept + 10


def test_a_readable_snapshot_behind_the_damage_loses_only_what_follows_it(tmp_path: Path) -> None:
    """Its entries before the snapshot aren't needed, but the chain through them is broken."""
    disk = RealDisk(str(tmp_path / "journal"))
    write(disk, 1, ENTRIES, snapshots=(20,))
    flip_entry(disk, b"log-20")
    plan, kept = planned(disk)
    assert kept.snapshot is not None
    assert kept.snapshot.content == b"as of 20"
    assert plan.cut.kept == 20
    plan.perform(str(tmp_path), str(tmp_path / "objects"), [])
    write(disk, 21, 30)
    assert replay(disk, CLUSTER).entries == [entry(turn) for turn in range(21, 31)]


def test_a_missing_segment_gives_up_all_behind_it(disk: RealDisk, tmp_path: Path) -> None:
    names = segments(disk)
    Path(disk.where, names[3]).unlink()
    plan, kept = planned(disk)
    assert 0 < plan.cut.kept == len(kept.entries)
    plan.perform(str(tmp_path), str(tmp_path / "objects"), [])
    assert replay(disk, CLUSTER).entries == kept.entries


def test_an_unreadable_snapshot_proves_entries_that_a_cut_gives_up(tmp_path: Path) -> None:
    disk = RealDisk(str(tmp_path / "journal"))
    write(disk, 1, 30, snapshots=(10, 20))
    flip(disk, f"{20:020}.snapshot", 130)
    flip_entry(disk, b"log-15")
    plan, kept = planned(disk)
    assert kept.snapshot is not None
    assert kept.snapshot.content == b"as of 10"
    assert plan.cut.kept == 14
    assert plan.cut.lost == 16
    plan.perform(str(tmp_path), str(tmp_path / "objects"), [])
    assert replay(disk, CLUSTER).entries == [entry(turn) for turn in range(11, 15)]


def test_two_cuts_of_the_same_place_do_not_mix(disk: RealDisk, tmp_path: Path) -> None:
    aside: set[str] = set()
    for _ in range(2):
        flip_entry(disk, b"log-9")
        plan, _ = planned(disk)
        aside.add(plan.perform(str(tmp_path), str(tmp_path / "objects"), []))
        write(disk, plan.cut.kept + 1, ENTRIES)
    assert len(aside) == 2
