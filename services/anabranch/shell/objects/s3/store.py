"""`ports.ObjectStore` on a bucket: immutable objects by conditional PUT, ranged GETs, deadlines.

A PUT whose answer was lost is made again under the same name and can then meet its own first
attempt. So each carries a mark, drawn anew for every `put`: what is there with our mark is ours,
and whole, because the store keeps objects whole or not at all.
"""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from obstore import Bytes, delete_async, get_async, get_range_async, head_async, put_async
from obstore import list as list_objects  # pyright: ignore[reportUnknownVariableType]

from anabranch.core.errors import CorruptObject, ObjectExists, ObjectMissing
from anabranch.core.health import Standing
from anabranch.core.machine import Buffer, PutTarget
from anabranch.core.types import Milliseconds, Nanoseconds
from anabranch.ports import NewObject, StoredObject
from anabranch.shell.net.reload import Renewed
from anabranch.shell.objects.folder import NAME
from anabranch.shell.objects.s3.clients import Lent, hot
from anabranch.shell.objects.s3.meter import Kind, Meter
from anabranch.shell.objects.s3.presigning import Keys, presigned, presigned_puts
from anabranch.shell.objects.s3.responses import Fault, Verdict
from anabranch.shell.objects.s3.retries import Asking
from anabranch.shell.objects.s3.settings import S3Settings
from anabranch.shell.objects.s3.trace import Call, Trace
from anabranch.shell.objects.s3.upload import MARK, Uploads
from anabranch.shell.runtime.failpoints import reached
from anabranch.shell.runtime.randomness import randbits
from anabranch.shell.telemetry.log import Log

if TYPE_CHECKING:
    from obstore import ObjectMeta
    from obstore.store import S3Store as Client

PAGE = 1_000
"""Names in one answer to a listing."""
JOIN_BYTES_MAX = 32 * 1024
"""Parts that are smaller on average are cheaper to copy together than to hand over one by one."""


class StoreGauges:
    __slots__ = ("failures_in_a_row", "standing")

    def __init__(self, standing: Standing, failures: int) -> None:
        self.standing = int(standing)
        """0 healthy, 1 degraded, 2 unavailable."""
        self.failures_in_a_row = failures


class S3Store:
    def __init__(self, settings: S3Settings, log: Log, now: Callable[[], Nanoseconds]) -> None:
        self.meter = Meter(settings)
        self._settings = settings
        self._now = now
        trusted = () if settings.ca_file is None else (settings.ca_file,)
        self._hot = Renewed(trusted, partial(hot, settings), log)
        self._asking = Asking(settings, self.meter, Trace(log, on=settings.trace), log, now)
        self._uploads = Uploads(settings, self.meter)
        self._lent: Lent | None = None

    @property
    def standing(self) -> Standing:
        return self._asking.health.standing

    @property
    def _client(self) -> "Client":
        """Of authorities that are trusted today."""
        return self._hot.current()

    def gauges(self) -> StoreGauges:
        health = self._asking.health
        return StoreGauges(health.standing, health.failures)

    async def put(self, name: str, parts: Sequence[Buffer]) -> None:
        assert NAME.fullmatch(name), name
        size = sum(map(len, parts))
        mark = f"{randbits(64):016x}"
        call = self._call(Kind.PUT, name)
        if reached("store.put.before"):
            raise self._asking.failed(call)
        if size >= self._settings.multipart_bytes_min:
            await self._uploads.put(name, parts, mark)
        else:
            await self._create(call, parts, size, mark)
        self.meter.put(size)
        if reached("store.put.after"):
            raise self._asking.failed(call)

    async def get(self, name: str, start: int, length: int) -> bytes:
        if length == 0:
            await self.size(name)
            return b""
        content = await self._range(name, start, length)
        if len(content) != length:
            reason = f"bytes {start}..{start + length} were asked, it ends at"
            raise CorruptObject(name, f"{reason} {start + len(content)}")
        return content

    async def size(self, name: str) -> int:
        assert NAME.fullmatch(name), name
        call = self._call(Kind.HEAD, name)
        found = await self._asking.ask(call, lambda: head_async(self._client, name))
        if not isinstance(found, Fault):
            return found["size"]
        # A HEAD's answer has no body to tell a missing object from a missing bucket: a GET's has.
        await self._range(name, 0, 1)
        raise self._asking.failed(call)

    async def delete(self, names: Sequence[str]) -> None:
        for first in range(0, len(names), PAGE):
            batch = names[first : first + PAGE]
            assert all(map(NAME.fullmatch, batch)), batch
            call = self._call(Kind.DELETE, batch[0])
            found = await self._asking.ask(call, partial(delete_async, self._client, batch))
            if isinstance(found, Fault) and found.verdict is not Verdict.MISSING:
                raise self._asking.failed(call)

    async def list(self, prefix: str = "") -> "list[StoredObject]":
        """By folders, which is what the client can ask for; the rest of the prefix is sifted.

        Objects of others whose names none of our calls accepts are left out.
        """
        folder = prefix.rpartition("/")[0]
        found: list[StoredObject] = []
        after: str | None = None
        while True:
            page = await self._page(folder, after)
            found += (
                each for each in page if each.name.startswith(prefix) and NAME.fullmatch(each.name)
            )
            if len(page) < PAGE:
                return sorted(found, key=lambda each: each.name)
            after = page[-1].name

    async def sign(
        self, ranges: Sequence[tuple[str, int, int]], valid_ms: Milliseconds
    ) -> Sequence[str]:
        return await asyncio.to_thread(self._sign, ranges, valid_ms)

    async def sign_put(
        self, contents: Sequence[NewObject], valid_ms: Milliseconds
    ) -> Sequence[PutTarget]:
        return await asyncio.to_thread(self._sign_put, contents, valid_ms)

    async def close(self) -> None:
        await self._uploads.close()

    def _sign(
        self, ranges: Sequence[tuple[str, int, int]], valid_ms: Milliseconds
    ) -> Sequence[str]:
        return presigned(self._settings, self._keys(), ranges, valid_ms, self._now())

    def _sign_put(
        self, contents: Sequence[NewObject], valid_ms: Milliseconds
    ) -> Sequence[PutTarget]:
        return presigned_puts(self._settings, self._keys(), contents, valid_ms, self._now())

    def _keys(self) -> Keys:
        if self._lent is None:
            self._lent = Lent(self._settings)
        return self._lent.keys()

    async def _create(self, call: Call, parts: Sequence[Buffer], size: int, mark: str) -> None:
        name = call.name
        body = b"".join(parts) if size < len(parts) * JOIN_BYTES_MAX else parts
        create = partial(put_async, attributes={MARK: mark}, mode="create", use_multipart=False)
        found = await self._asking.ask(call, lambda: create(self._client, name, body))
        if not isinstance(found, Fault):
            return
        if found.verdict is not Verdict.TAKEN:
            raise self._asking.failed(call)
        if call.attempts == 1 or not await self._has(name, mark):
            raise ObjectExists(name)

    def _call(self, kind: Kind, name: str) -> Call:
        return Call(kind, name, self._now())

    async def _range(self, name: str, start: int, length: int) -> bytes:
        """As much of it as there is."""
        assert NAME.fullmatch(name), name
        call = self._call(Kind.GET, name)
        if reached("store.get.before"):
            raise self._asking.failed(call)

        async def attempt() -> Bytes:
            return await get_range_async(self._client, name, start=start, length=length)

        found = await self._asking.ask(call, attempt)
        if not isinstance(found, Fault):
            self.meter.got(len(found))
            return found.to_bytes()
        match found.verdict:
            case Verdict.MISSING:
                raise ObjectMissing(name)
            case Verdict.PAST_END:
                return b""
            case _:
                raise self._asking.failed(call)

    async def _has(self, name: str, mark: str) -> bool:
        """Is what is there under this name the work of an earlier attempt?"""
        call = self._call(Kind.HEAD, name)
        found = await self._asking.ask(
            call, lambda: get_async(self._client, name, options={"head": True})
        )
        if isinstance(found, Fault):
            raise self._asking.failed(call)
        return found.attributes.get(MARK) == mark

    async def _page(self, folder: str, after: str | None) -> "list[StoredObject]":
        call = self._call(Kind.LIST, folder)

        async def attempt() -> "list[StoredObject]":
            listing = list_objects(self._client, folder or None, offset=after, chunk_size=PAGE)
            async for chunk in listing:
                return [_stored(each) for each in chunk]
            return []

        found = await self._asking.ask(call, attempt)
        if isinstance(found, Fault):
            raise self._asking.failed(call)
        return found


def _stored(found: "ObjectMeta") -> StoredObject:
    return StoredObject(
        found["path"], found["size"], int(found["last_modified"].timestamp() * 1_000)
    )
