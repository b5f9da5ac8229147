"""Files and directories of the operating system, and what it refuses in our words."""

import errno
import os
import stat
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch.core.errors import StorageFailed, StorageFull
from anabranch.core.machine import Buffer
from anabranch.shell.journal.disk import (
    RealDisk,
    RealFile,
    make_directory,
    storage,
    sync_directory,
    write_parts,
)


@pytest.fixture
def disk(tmp_path: Path) -> RealDisk:
    return RealDisk(str(tmp_path / "a" / "journal"))


def refusing(number: int) -> Callable[..., int]:
    def refuse(*_: object) -> int:
        raise OSError(number, os.strerror(number))

    return refuse


def test_a_disk_makes_its_directory_for_its_owner_alone(tmp_path: Path) -> None:
    root = tmp_path / "a" / "b"
    disk = RealDisk(str(root))
    assert disk.where == str(root)
    assert stat.S_IMODE(root.stat().st_mode) == 0o700
    disk.create("x").close()
    assert stat.S_IMODE((root / "x").stat().st_mode) == 0o600
    assert RealDisk(str(root)).names() == ["x"], "another look finds what is there"


def test_only_files_of_its_own_are_named_in_order(disk: RealDisk, tmp_path: Path) -> None:
    for name in ("b", "c", "a"):
        disk.create(name).close()
    root = Path(disk.where)
    (root / "folder").mkdir()
    (root / "link").symlink_to(tmp_path)
    assert disk.names() == ["a", "b", "c"]


def test_what_is_written_anywhere_in_a_file_is_read_there(disk: RealDisk) -> None:
    file = disk.create("x")
    file.write(b"world", 6)
    file.write(memoryview(b"hello "), 0)
    file.write(bytearray(b"!"), 11)
    file.sync()
    file.close()
    assert disk.read("x") == b"hello world!"
    assert disk.read("x", 5, 6) == b"world"
    assert disk.read("x", 5, 100) == b""
    again = disk.open("x")
    again.truncate(5)
    again.close()
    assert disk.read("x") == b"hello"


def test_a_file_is_created_once(disk: RealDisk) -> None:
    disk.create("x").close()
    with pytest.raises(StorageFailed, match="File exists"):
        disk.create("x")
    with pytest.raises(StorageFailed, match="No such file"):
        disk.open("y")


def test_files_are_renamed_over_others_and_removed(disk: RealDisk) -> None:
    for name in ("old", "new"):
        file = disk.create(name)
        file.write(name.encode(), 0)
        file.close()
    disk.rename("old", "new")
    disk.sync()
    assert (disk.names(), disk.read("new")) == (["new"], b"old")
    disk.remove("new")
    with pytest.raises(StorageFailed, match="/new"):
        disk.remove("new")
    with pytest.raises(StorageFailed):
        disk.rename("new", "newer")


def test_a_name_never_leads_out_of_the_directory(disk: RealDisk) -> None:
    with pytest.raises(AssertionError):
        disk.create("../x")


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_is_said_as_such(number: int) -> None:
    with pytest.raises(StorageFull, match="/data/x"), storage("/data/x"):
        raise OSError(number, os.strerror(number))


@pytest.mark.parametrize("number", [errno.EIO, errno.EROFS, errno.EACCES, errno.EMFILE])
def test_any_other_refusal_is_said_with_the_systems_words(number: int) -> None:
    with pytest.raises(StorageFailed) as refused, storage("/data/x"):
        raise OSError(number, os.strerror(number))
    assert os.strerror(number) in refused.value.message
    assert "/data/x" in refused.value.message
    assert isinstance(refused.value.__cause__, OSError), "the cause is kept for the log"


def test_no_other_error_is_taken_for_the_disks() -> None:
    with pytest.raises(ZeroDivisionError), storage("/data/x"):
        raise ZeroDivisionError


def test_the_last_room_is_written_before_a_full_disk_is_told() -> None:
    file = RealFile(os.open("/dev/full", os.O_WRONLY), "/dev/full")
    with pytest.raises(StorageFull, match="/dev/full"):
        file.write(b"x", 0)
    file.close()


@pytest.mark.parametrize("call", ["pwrite", "fdatasync", "ftruncate"])
def test_a_broken_disk_is_told_by_whatever_was_asked(
    disk: RealDisk, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    file = disk.create("x")
    monkeypatch.setattr(os, call, refusing(errno.EIO))
    ask: dict[str, Callable[[], None]] = {
        "pwrite": lambda: file.write(b"x", 0),
        "fdatasync": file.sync,
        "ftruncate": lambda: file.truncate(0),
    }
    with pytest.raises(StorageFailed, match=os.strerror(errno.EIO)):
        ask[call]()
    monkeypatch.undo()
    file.close()


def test_a_write_that_the_system_cuts_short_goes_on(
    disk: RealDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = os.pwrite
    monkeypatch.setattr(os, "pwrite", lambda fd, left, at: whole(fd, bytes(left)[:3], at))
    file = disk.create("x")
    file.write(b"0123456789", 2)
    file.close()
    assert disk.read("x", offset=2) == b"0123456789"


def test_a_directory_may_be_made_by_many_at_once(tmp_path: Path) -> None:
    path = str(tmp_path / "a" / "b" / "c" / "d")
    gate, failures = threading.Barrier(8), list[BaseException]()

    def make() -> None:
        gate.wait()
        try:
            make_directory(path)
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=make) for _ in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert failures == []
    assert os.path.isdir(path)


def test_each_new_directory_is_synced_in_the_one_above(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[str] = []
    monkeypatch.setattr("anabranch.shell.journal.disk.sync_directory", synced.append)
    make_directory(str(tmp_path / "a" / "b"))
    assert synced == [str(tmp_path), str(tmp_path / "a")]


def test_a_directory_that_is_gone_cant_be_synced(tmp_path: Path) -> None:
    sync_directory(str(tmp_path))
    with pytest.raises(FileNotFoundError):
        sync_directory(str(tmp_path / "gone"))


part = st.one_of(st.binary(max_size=20), st.integers(0, 20_000).map(bytes))
parts = st.lists(part, max_size=40)


@given(parts, st.integers(1, 50_000))
def test_parts_are_written_one_behind_the_other_however_the_system_cuts_them(
    parts: Sequence[bytes], piece: int
) -> None:
    written = bytearray()

    def some(_: int, buffers: Sequence[Buffer]) -> int:
        taken = b"".join(buffers)[:piece]
        written.extend(taken)
        return len(taken)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(os, "writev", some)
        write_parts(-1, parts)
    assert bytes(written) == b"".join(parts)


def test_more_parts_than_one_call_takes_are_written(tmp_path: Path) -> None:
    large = [bytes([n % 256]) * 9_000 for n in range(1_500)]
    file = os.open(tmp_path / "x", os.O_WRONLY | os.O_CREAT)
    write_parts(file, large)
    os.close(file)
    assert (tmp_path / "x").read_bytes() == b"".join(large)
