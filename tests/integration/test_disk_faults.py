"""Journal and object store on a real file system that loses power, fills up, or turns read-only."""

import asyncio
from threading import Event, Thread

import pytest
from tests.integration.loop_disk import LoopDisk, run

from anabranch.core.errors import StorageFailed, StorageFull
from anabranch.shell.journal.data_dir import DataDir
from anabranch.shell.journal.disk import RealDisk
from anabranch.shell.journal.file_journal import FileJournal
from anabranch.shell.objects.folder import Folder, FolderStore


def journal(loop: LoopDisk) -> FileJournal:
    return FileJournal(RealDisk(f"{loop.mount}/journal"), "c1", segment_bytes=200_000)


@pytest.mark.parametrize("acknowledged_min", [1, 10, 60, 150])
def test_power_loss_while_appending_costs_nothing_acknowledged(
    loop: LoopDisk, acknowledged_min: int
) -> None:
    writer = journal(loop)
    writer.recover()
    groups = [[b"%d:%d" % (n, entry) * 100 for entry in range(4)] for n in range(5_000)]
    enough = Event()
    acknowledged = 0

    def append() -> None:
        nonlocal acknowledged
        try:
            for group in groups:
                acknowledged = writer.append(group)
                if acknowledged >= acknowledged_min * 4:
                    enough.set()
                if acknowledged % 40 == 0:
                    writer.save_snapshot(acknowledged, b"%d" % acknowledged * 1_000)
        except StorageFailed:
            return

    thread = Thread(target=append)
    thread.start()
    assert enough.wait(60)
    loop.cut_power()
    thread.join()
    with pytest.raises(StorageFailed):
        writer.append([b"refused"])
    writer.close()
    loop.restore()

    recovered = journal(loop).recover()
    entries = [entry for group in groups for entry in group]
    assert acknowledged <= recovered.last <= acknowledged + 4
    assert recovered.entries == entries[recovered.first - 1 : recovered.last]
    if recovered.snapshot is not None:
        index = recovered.snapshot.index
        assert recovered.first == index + 1
        assert recovered.snapshot.content == b"%d" % index * 1_000


def test_power_loss_while_putting_leaves_every_object_whole_or_absent(loop: LoopDisk) -> None:
    stored: list[int] = []

    def body(n: int) -> bytes:
        return b"%08d" % n * (500 + n % 7 * 3_000)

    async def put_until_it_fails(store: FolderStore, first: int) -> None:
        try:
            for n in range(first, 2_000, 4):
                await store.put(f"c1/data/1/{n:06}", [body(n)[:100], body(n)[100:]])
                stored.append(n)
                if len(stored) == 60:
                    loop.cut_power()
        except StorageFailed:
            return

    async def put() -> None:
        store = FolderStore(f"{loop.mount}/objects")
        await asyncio.gather(*(put_until_it_fails(store, first) for first in range(4)))
        await store.close()

    asyncio.run(put())
    loop.restore()
    folder = Folder(f"{loop.mount}/objects")
    found = folder.list()
    assert {int(each.name[-6:]) for each in found} >= set(stored)
    assert len(stored) >= 60
    for each in found:
        n = int(each.name[-6:])
        assert each.size == len(body(n))
        assert folder.get(each.name, 0, each.size) == body(n)


def test_a_full_disk_stops_appends_until_space_returns(loop: LoopDisk) -> None:
    data = DataDir(str(loop.mount / "data"), "c1")
    disk = RealDisk(data.journal)
    writer = FileJournal(disk, data.cluster, segment_bytes=1 << 20)
    writer.recover()
    acknowledged = [b"before"]
    writer.append(acknowledged)
    ballast = loop.fill()

    def append_until_full() -> None:
        try:
            while True:
                entry = b"%d" % len(acknowledged) * 5_000
                writer.append([entry])
                acknowledged.append(entry)
        except StorageFull:
            return

    append_until_full()
    for _ in range(20):
        with pytest.raises(StorageFull):
            writer.append([b"refused" * 200_000])
        with pytest.raises(StorageFull):
            writer.save_snapshot(len(acknowledged), bytes(8 << 20))
    ballast.unlink()
    back = b"space is back"
    assert writer.append([back]) == len(acknowledged) + 1
    acknowledged.append(back)
    loop.fill()
    append_until_full()
    writer.close()
    data.close()

    loop.cut_power()
    loop.restore()
    data = DataDir(str(loop.mount / "data"), "c2")
    assert data.cluster == "c1"
    again = FileJournal(RealDisk(data.journal), data.cluster)
    assert again.recover().entries == acknowledged
    again.close()
    data.close()


def test_a_full_disk_refuses_objects_whole_and_takes_them_when_space_returns(
    loop: LoopDisk,
) -> None:
    folder = Folder(f"{loop.mount}/objects")
    folder.put("c1/data/1/0", [b"before"])
    ballast = loop.fill()
    for _ in range(5):
        with pytest.raises(StorageFull):
            folder.put("c1/data/1/1", [b"x" * 100_000] * 10)
    assert [each.name for each in folder.list()] == ["c1/data/1/0"]
    ballast.unlink()
    folder.put("c1/data/1/1", [b"x" * 100_000] * 10)
    assert folder.size("c1/data/1/1") == 1_000_000


def test_a_read_only_disk_refuses_writes_and_still_reads(loop: LoopDisk) -> None:
    writer = journal(loop)
    writer.recover()
    writer.append([b"a"])
    writer.close()
    folder = Folder(f"{loop.mount}/objects")
    folder.put("x", [b"content"])
    run("mount", "-o", "remount,ro", str(loop.mount))
    with pytest.raises(StorageFailed, match="Read-only file system"):
        folder.put("y", [b"content"])
    assert folder.get("x", 0, 7) == b"content"
    with pytest.raises(StorageFailed, match="Read-only file system"):
        journal(loop).recover()
    run("mount", "-o", "remount,rw", str(loop.mount))
    assert journal(loop).recover().entries == [b"a"]
