"""The store in a folder: what a full or broken disk, a killed process and strangers do to it."""

import asyncio
import errno
import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anabranch.core.errors import (
    CorruptObject,
    ObjectExists,
    ObjectMissing,
    StorageFailed,
    StorageFull,
)
from anabranch.shell.objects.folder import Folder, FolderStore, StoredFolder


@pytest.fixture(params=["nameless", "named"])
def folder(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Folder:
    """On file systems that can write files without a name, and on others."""
    if request.param == "named":
        monkeypatch.setattr(Folder, "_can_write_nameless", lambda _: False)
    return Folder(str(tmp_path / "objects"))


def refusing(number: int) -> Callable[..., int]:
    def refuse(*_: object, **__: object) -> int:
        raise OSError(number, os.strerror(number))

    return refuse


def files(root: Path) -> list[str]:
    return sorted(str(each.relative_to(root)) for each in root.rglob("*") if each.is_file())


@pytest.mark.parametrize("call", ["writev", "fdatasync", "link", "fsync"])
@pytest.mark.parametrize(
    ("number", "error"), [(errno.ENOSPC, StorageFull), (errno.EIO, StorageFailed)]
)
def test_a_put_that_fails_leaves_nothing_half_written(
    folder: Folder,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    call: str,
    number: int,
    error: type[Exception],
) -> None:
    folder.put("c/0", [b"before"])
    with monkeypatch.context() as broken:
        broken.setattr(os, call, refusing(number))
        with pytest.raises(error):
            folder.put("c/1", [b"con", b"tent"])
    there = [each.name for each in folder.list()]
    assert there in (["c/0"], ["c/0", "c/1"])
    if "c/1" in there:
        assert call == "fsync", "it has its name, and nobody was told that it is durable"
        assert folder.get("c/1", 0, 7) == b"content"
    else:
        folder.put("c/1", [b"con", b"tent"])
    assert [name for name in files(tmp_path / "objects") if ".parts" in name] == []


def test_leftovers_of_a_killed_process_are_swept_at_the_next_start(tmp_path: Path) -> None:
    root = tmp_path / "objects"
    (root / ".parts").mkdir(parents=True)
    (root / ".parts" / "17").write_bytes(b"half an object")
    found = Folder(str(root))
    assert files(root) == []
    found.put("c/1", [b"x"])
    assert files(root) == ["c/1"]


def test_who_only_reads_makes_and_sweeps_nothing(tmp_path: Path) -> None:
    root = tmp_path / "objects"
    (root / ".parts").mkdir(parents=True)
    (root / ".parts" / "17").write_bytes(b"half an object")
    (root / "c").mkdir()
    (root / "c" / "1").write_bytes(b"content")
    found = StoredFolder(str(root))
    assert [(each.name, each.size) for each in found.list()] == [("c/1", 7)]
    assert found.get("c/1", 3, 4) == b"tent"
    assert files(root) == [".parts/17", "c/1"]
    assert StoredFolder(str(tmp_path / "nowhere")).list() == []


def test_an_object_that_was_cut_on_the_disk_is_damage(folder: Folder, tmp_path: Path) -> None:
    folder.put("c/1", [b"content"])
    os.truncate(tmp_path / "objects" / "c" / "1", 4)
    with pytest.raises(CorruptObject, match=r"bytes 2\.\.7 were asked, it ends at 4"):
        folder.get("c/1", 2, 5)
    assert folder.get("c/1", 0, 4) == b"cont"


def test_a_disk_that_cant_be_read_is_no_missing_object(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder.put("c/1", [b"content"])
    with monkeypatch.context() as broken:
        broken.setattr(os, "pread", refusing(errno.EIO))
        with pytest.raises(StorageFailed, match=os.strerror(errno.EIO)):
            folder.get("c/1", 0, 1)
    with pytest.raises(ObjectMissing):
        folder.get("c/1/below-a-file", 0, 1)


@pytest.mark.parametrize("name", ["", "/c", "../c", "c//1", "c/../1", ".hidden", "c/.h", "c\n"])
def test_a_name_that_leads_elsewhere_is_a_fault_of_ours(folder: Folder, name: str) -> None:
    with pytest.raises(AssertionError):
        folder.put(name, [b"x"])
    with pytest.raises(AssertionError):
        folder.get(name, 0, 1)
    with pytest.raises(AssertionError):
        folder.delete([name])


def test_of_many_threads_one_creates_it(folder: Folder) -> None:
    gate, outcomes = threading.Barrier(8), list[object]()

    def put(number: int) -> None:
        gate.wait()
        try:
            folder.put("c/raced", [bytes([number]) * 10_000])
            outcomes.append(number)
        except ObjectExists as lost:
            outcomes.append(lost)

    threads = [threading.Thread(target=put, args=(n,)) for n in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    (won,) = [each for each in outcomes if isinstance(each, int)]
    assert folder.get("c/raced", 0, 10_000) == bytes([won]) * 10_000


# A file can't be a directory too: none of these leads through another.
names = st.sampled_from(["a", "e/1", "b/1", "b/2", "b/c/1", "d-e/f.g_h"])
steps = st.lists(
    st.tuples(st.sampled_from(["put", "delete", "get", "list"]), names, st.binary(max_size=30)),
    max_size=40,
)


@settings(max_examples=60, deadline=None)
@given(steps)
def test_a_folder_is_a_dict_of_bytes(
    tmp_path_factory: pytest.TempPathFactory, program: list[tuple[str, str, bytes]]
) -> None:
    folder = Folder(str(tmp_path_factory.mktemp("folder")))
    model: dict[str, bytes] = {}
    for what, name, content in program:
        match what:
            case "put" if name in model:
                with pytest.raises(ObjectExists):
                    folder.put(name, [content])
            case "put":
                folder.put(name, [content[:3], content[3:]])
                model[name] = content
            case "delete":
                folder.delete([name, "never/there"])
                model.pop(name, None)
            case "get" if name in model:
                assert folder.size(name) == len(model[name])
                assert folder.get(name, 0, len(model[name])) == model[name]
            case "get":
                with pytest.raises(ObjectMissing):
                    folder.size(name)
            case _:
                prefix = name[:2]
                found = [(each.name, each.size) for each in folder.list(prefix)]
                kept = sorted(each for each in model if each.startswith(prefix))
                assert found == [(each, len(model[each])) for each in kept]


def test_closing_waits_for_what_is_under_way(tmp_path: Path) -> None:
    async def scene() -> None:
        store = FolderStore(str(tmp_path / "objects"), threads=1)
        puts = [asyncio.ensure_future(store.put(f"c/{n}", [bytes(100_000)])) for n in range(10)]
        await asyncio.sleep(0)
        await store.close()
        await asyncio.gather(*puts)
        assert len(files(tmp_path / "objects")) == 10

    asyncio.run(scene())
