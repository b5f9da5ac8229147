"""What every object store promises (`ports.ObjectStore`)."""

import asyncio
import os
import urllib.error
import urllib.request
from base64 import b64encode
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from hashlib import sha256
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from obstore import put_async
from tests.servers import bucket_of
from tests.unit.shell.objects.scripted_s3 import ScriptedS3

from anabranch.apps.processes.servers import S3Server
from anabranch.core.errors import CorruptObject, NotFetchable, ObjectExists, ObjectMissing
from anabranch.core.machine import PutTarget
from anabranch.core.records.objects import quarantined, unquarantined
from anabranch.ports import NewObject, ObjectStore, SigningStore
from anabranch.shell.objects import quarantine
from anabranch.shell.objects.disk_cache import DiskCache
from anabranch.shell.objects.folder import Folder, FolderStore
from anabranch.shell.objects.memory import MemoryStore
from anabranch.shell.objects.s3.clients import hot
from anabranch.shell.objects.s3.store import S3Store
from anabranch.shell.runtime.clock import Clock
from anabranch.shell.telemetry.log import Log

Body = Callable[[ObjectStore], Awaitable[None]]
Run = Callable[[Body], None]


KINDS = (
    *("memory", "nameless files", "named files", "behind a disk"),
    *("s3", "s3 in parts", "scripted s3"),
)


@pytest.fixture
def scripted() -> Iterator[ScriptedS3]:
    """Needs no binary, and shows what the store asks of a server."""
    with ScriptedS3().serving() as serving:
        yield serving


@pytest.fixture(params=KINDS)
def run(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs a test's body on a store over the same objects, each time opened anew."""
    opener: Callable[[], ObjectStore]
    match request.param:
        case "memory":
            memory = MemoryStore()
            opener = lambda: memory  # noqa: E731
        case "behind a disk":
            memory, log = MemoryStore(), Log(Clock().now)
            opener = lambda: DiskCache(memory, str(tmp_path / "cache"), 1 << 20, log)  # noqa: E731
        case "scripted s3":
            scripted = request.getfixturevalue("scripted")
            settings = scripted.settings(prefix="deep/er")
            opener = partial(S3Store, settings, Log(Clock().now), Clock().now)
        case "s3" | "s3 in parts":
            settings = bucket_of(request.getfixturevalue("s3"))
            if request.param == "s3 in parts":
                settings = replace(settings, prefix="deep/er", multipart_bytes_min=1)
            opener = partial(S3Store, settings, Log(Clock().now), Clock().now)
        case _:
            if request.param == "named files":
                monkeypatch.setattr(Folder, "_can_write_nameless", lambda _: False)
            opener = partial(FolderStore, str(tmp_path / "objects"))

    async def opened(body: Body) -> None:
        store = opener()
        try:
            await body(store)
        finally:
            await store.close()

    return lambda body: asyncio.run(opened(body))


def test_an_object_is_its_parts_one_behind_the_other(run: Run) -> None:
    async def body(store: ObjectStore) -> None:
        await store.put("c1/data/1/1", [b"ab", bytearray(b""), memoryview(b"cde"), b"f"])
        assert await store.size("c1/data/1/1") == 6
        assert await store.get("c1/data/1/1", 0, 6) == b"abcdef"
        assert await store.get("c1/data/1/1", 1, 3) == b"bcd"
        assert await store.get("c1/data/1/1", 6, 0) == b""

    run(body)


def test_an_object_may_have_more_parts_than_one_write_takes(run: Run) -> None:
    parts = [b"%d," % n for n in range(5_000)]

    async def body(store: ObjectStore) -> None:
        await store.put("many", parts)
        await store.put("none", [])
        assert await store.get("many", 0, await store.size("many")) == b"".join(parts)
        assert await store.size("none") == 0

    run(body)


def test_an_object_is_created_once_and_never_overwritten(run: Run) -> None:
    async def body(store: ObjectStore) -> None:
        await store.put("a/1", [b"first"])
        with pytest.raises(ObjectExists, match="a/1"):
            await store.put("a/1", [b"second"])
        assert await store.get("a/1", 0, 5) == b"first"

    run(body)

    async def again(store: ObjectStore) -> None:
        with pytest.raises(ObjectExists):
            await store.put("a/1", [b"first"])
        assert [each.name for each in await store.list()] == ["a/1"]

    run(again)


def test_of_many_who_create_one_object_one_succeeds_and_it_is_whole(run: Run) -> None:
    async def body(store: ObjectStore) -> None:
        puts = [store.put("x/y/raced", [bytes([n]) * 50_000] * 4) for n in range(8)]
        outcomes = await asyncio.gather(*puts, return_exceptions=True)
        (winner,) = [n for n, outcome in enumerate(outcomes) if outcome is None]
        assert sum(isinstance(outcome, ObjectExists) for outcome in outcomes) == 7
        assert await store.get("x/y/raced", 0, 200_000) == bytes([winner]) * 200_000

    run(body)


def test_what_is_not_there_is_said_by_name(run: Run) -> None:
    async def body(store: ObjectStore) -> None:
        await store.put("a/1", [b"12345"])
        for missing in ("a/2", "b/1", "a/1/1"):
            with pytest.raises(ObjectMissing, match=missing):
                await store.get(missing, 0, 1)
            with pytest.raises(ObjectMissing, match=missing):
                await store.size(missing)
        with pytest.raises(CorruptObject, match=r"a/1 .*it ends at 5"):
            await store.get("a/1", 3, 4)

    run(body)


def test_deleting_is_the_same_whether_it_is_there_or_not(run: Run) -> None:
    async def body(store: ObjectStore) -> None:
        for name in ("a/1", "a/2", "b/1"):
            await store.put(name, [b"x"])
        await store.delete(["a/1", "a/3", "c/1", "b/1/1", "b/1"])
        await store.delete(["a/1"])
        await store.delete([])
        assert [each.name for each in await store.list()] == ["a/2"]
        await store.put("a/1", [b"anew"])

    run(body)


def test_a_listing_has_names_in_order_with_sizes_and_times(run: Run) -> None:
    async def body(store: ObjectStore) -> None:
        names = ["c1/data/1/2", "c1/data/1/10", "c1/data/2/1", "c1/data-old", "c2/data/1/1", "c1/d"]
        for size, name in enumerate(names):
            await store.put(name, [b"x" * size])
        listed = await store.list()
        assert [(each.name, each.size) for each in listed] == sorted(
            (name, size) for size, name in enumerate(names)
        )
        assert all(each.modified_ms > 1_600_000_000_000 for each in listed)
        for prefix in ("c1/data/1/", "c1/data/1/1", "c1/d", "c1", "", "c3/", "c1/data/1/2/3"):
            found = [each.name for each in await store.list(prefix)]
            assert found == sorted(name for name in names if name.startswith(prefix))

    run(body)


def test_leftovers_of_a_killed_process_are_swept_and_never_listed(tmp_path: Path) -> None:
    parts = tmp_path / ".parts"
    parts.mkdir()
    (parts / "7").write_bytes(b"half")
    folder = Folder(str(tmp_path))
    assert list(parts.iterdir()) == []
    (parts / "8").write_bytes(b"half")
    folder.put("a", [b"whole"])
    assert [each.name for each in folder.list()] == ["a"]
    for prefix in (".parts", ".parts/", "../", "/", "a//"):
        assert folder.list(prefix) == []


@given(name=st.sampled_from(["", "/a", "a/", "a//b", "../a", "a/../b", ".a", "a/.b", "a b", "a\n"]))
def test_a_name_that_leads_elsewhere_is_never_followed(
    name: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = Folder(str(tmp_path_factory.mktemp("objects")))
    with pytest.raises(AssertionError):
        folder.put(name, [b"x"])
    with pytest.raises(AssertionError):
        folder.get(name, 0, 1)
    with pytest.raises(AssertionError):
        folder.delete([name])


def test_orphans_are_moved_to_quarantine_once_and_purged_by_its_own_time(run: Run) -> None:
    log = Log(Clock().now)
    names = ["c1/data/00000001/0000000000000", "c1/data/00000001/0000000000001"]

    async def body(store: ObjectStore) -> None:
        for name in names:
            await store.put(name, [name.encode()])
        await store.put("c1/data/00000002/0000000000000", [b"kept"])
        assert await quarantine.move(store, names, log) == 2
        assert await quarantine.move(store, names, log) == 0
        there = await quarantine.listed(store, "c1")
        assert [unquarantined(each.name) for each in there] == names
        for each in there:
            moved = await store.get(each.name, 0, each.size)
            assert moved == unquarantined(each.name).encode()
        assert [each.name for each in await store.list("c1/data/")] == [
            "c1/data/00000002/0000000000000"
        ]
        assert await quarantine.purge(store, names, log) == 2
        assert await quarantine.listed(store, "c1") == []

    run(body)


def test_objects_are_brought_back_from_quarantine_though_an_attempt_was_cut_short(run: Run) -> None:
    log = Log(Clock().now)
    names = [f"c1/data/00000001/000000000000{turn}" for turn in range(3)]

    async def body(store: ObjectStore) -> None:
        for name in names:
            await store.put(name, [name.encode()])
        await quarantine.move(store, names, log)
        await store.put(names[0], [names[0].encode()])
        assert await quarantine.bring_back(store, names[:2], log) == 2
        assert await quarantine.bring_back(store, names[:2], log) == 0
        there = [each.name for each in await store.list("c1/")]
        assert there == [*names[:2], quarantined(names[2])]
        assert await store.get(names[1], 0, len(names[1])) == names[1].encode()

    run(body)


def test_a_move_to_quarantine_that_was_cut_short_is_simply_repeated(run: Run) -> None:
    log = Log(Clock().now)
    name = "c1/data/00000001/0000000000000"

    async def body(store: ObjectStore) -> None:
        await store.put(name, [b"orphan"])
        await store.put(quarantined(name), [b"orphan"])
        assert await quarantine.move(store, [name], log) == 1
        assert [each.name for each in await store.list("c1/")] == [quarantined(name)]

    run(body)


FOREIGN = (
    "c1/quarantine/notes.txt",
    "c1/quarantine/00000001/0000000000000.bak",
    "c1/quarantine/00000001/1",
    "c1/quarantine/c2/quarantine/00000001/0000000000000",
    "c1/quarantine/data/00000001/0000000000000",
)


def test_what_others_put_into_quarantine_stays_there(run: Run) -> None:
    log = Log(Clock().now)
    name = "c1/data/00000001/0000000000000"

    async def body(store: ObjectStore) -> None:
        for each in FOREIGN:
            await store.put(each, [b"not ours"])
        await store.put(quarantined(name), [b"orphan"])
        assert [each.name for each in await quarantine.listed(store, "c1")] == [quarantined(name)]
        assert await quarantine.purge(store, [name], log) == 1
        assert [each.name for each in await store.list()] == sorted(FOREIGN)

    run(body)


def test_files_that_no_object_can_be_are_not_listed(tmp_path: Path) -> None:
    folder = Folder(str(tmp_path))
    folder.put("c1/data/1", [b"ours"])
    (tmp_path / "c1/data/a b").write_bytes(b"")
    (tmp_path / "c1/data/a\n").write_bytes(b"")
    (tmp_path / "c1/with space").mkdir()
    (tmp_path / "c1/with space/1").write_bytes(b"")
    (tmp_path / "c1/data/link").symlink_to(tmp_path / "c1/data/1")
    (tmp_path / "c1/data/lost").symlink_to(tmp_path / "nowhere")
    os.mkfifo(tmp_path / "c1/data/pipe")
    assert [each.name for each in folder.list()] == ["c1/data/1"]
    assert [each.name for each in folder.list("c1/da")] == ["c1/data/1"]


def test_objects_of_others_in_a_bucket_are_not_listed(s3: S3Server) -> None:
    settings = bucket_of(s3)

    async def body() -> None:
        store = S3Store(settings, Log(Clock().now), Clock().now)
        try:
            await store.put("c1/data/1", [b"ours"])
            await put_async(hot(settings), "c1/data/a b", b"not ours")
            assert [each.name for each in await store.list("c1/")] == ["c1/data/1"]
        finally:
            await store.close()

    asyncio.run(body())


def test_a_signed_range_can_be_got_without_keys_and_nothing_else(
    run: Run, request: pytest.FixtureRequest
) -> None:
    if request.node.callspec.params["run"] == "scripted s3":
        pytest.skip("it looks at no signature")

    async def body(store: ObjectStore) -> None:
        if not isinstance(store, SigningStore):
            pytest.skip("its objects are in memory")
        await store.put("c/data/1/2", [b"0123456789"])
        try:
            (url,) = await store.sign([("c/data/1/2", 2, 4)], 60_000)
        except NotFetchable:
            pytest.skip("its objects are in memory")
        if url.startswith("file://"):
            assert (await asyncio.to_thread(_fetched, url, None))[1] == b"0123456789"
            return
        assert await asyncio.to_thread(_fetched, url, "bytes=2-5") == (206, b"2345")
        for other in ("bytes=2-6", "bytes=0-5", None):
            status, _ = await asyncio.to_thread(_fetched, url, other)
            assert status == 403, other

    run(body)


def test_an_object_can_be_created_without_keys_as_it_was_signed_and_only_once(
    run: Run, request: pytest.FixtureRequest
) -> None:
    if request.node.callspec.params["run"] == "scripted s3":
        pytest.skip("it looks at no signature")

    async def body(store: ObjectStore) -> None:
        if not isinstance(store, SigningStore):
            pytest.skip("its objects are in memory")
        content, other = b"0123456789", b"9876543210"
        name = "c/data/1/3"
        wanted = NewObject(name, len(content), sha256(content).digest())
        try:
            (target,) = await store.sign_put([wanted], 60_000)
        except NotFetchable:
            pytest.skip("its objects are in memory")
        if target.url.startswith("file://"):
            assert target.url.endswith(f"/{name}")
            return

        async def put(content: bytes, **changed: str) -> int:
            return await asyncio.to_thread(_put, target, content, **changed)

        # Another content, a shorter one, and one that its own checksum fits.
        assert await put(other) >= 400
        assert await put(content[:9]) >= 400
        checksum = b64encode(sha256(other).digest()).decode()
        assert await put(other, **{"x-amz-checksum-sha256": checksum}) == 403
        assert await put(content, **{"if-none-match": ""}) == 403
        with pytest.raises(ObjectMissing):
            await store.size(name)
        assert await put(content) == 200
        assert await put(content) == 412
        assert await store.get(name, 0, len(content)) == content

    run(body)


def _put(target: PutTarget, content: bytes, **changed: str) -> int:
    headers = {**target.headers, "content-length": str(len(content)), **changed}
    sent = {name: value for name, value in headers.items() if value}
    request = urllib.request.Request(target.url, data=content, headers=sent, method="PUT")
    try:
        with urllib.request.urlopen(request) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        return error.code


def _fetched(url: str, header: str | None) -> tuple[int, bytes]:
    request = urllib.request.Request(url, headers={"Range": header} if header else {})
    try:
        with urllib.request.urlopen(request) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, b""
