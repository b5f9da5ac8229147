"""A large object in parts: whole and create-only as any other, by a condition on its completion.

Parts are no object. They become one by the last request, which carries `If-None-Match: *`: so a
name that is taken is found out as late as that, and the parts are then thrown away.
"""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from botocore.exceptions import BotoCoreError, ClientError

from anabranch.core.errors import ObjectExists, StorageFailed
from anabranch.core.machine import Buffer
from anabranch.shell.objects.s3.clients import administrative, content
from anabranch.shell.objects.s3.meter import Kind, Meter
from anabranch.shell.objects.s3.settings import PARTS_MAX, S3Settings

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client
    from mypy_boto3_s3.type_defs import CompletedPartTypeDef

MARK = "anabranch-put"
"""What was written by which call: user metadata of every object."""
THREADS = 4

_Found = TypeVar("_Found")
FAULTS = (BotoCoreError, ClientError)


class Uploads:
    def __init__(self, settings: S3Settings, meter: Meter) -> None:
        self._settings = settings
        self._meter = meter
        self._client: S3Client | None = None
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="upload")

    async def put(self, name: str, parts: Sequence[Buffer], mark: str) -> None:
        """Raises ObjectExists; after StorageFailed the outcome is unknown."""
        settings = self._settings
        size = sum(map(len, parts))
        pieces = list(cut(parts, max(settings.part_bytes, -(-size // PARTS_MAX))))
        deadline_s = settings.deadline_ms / 1_000 * max(1, len(pieces) // THREADS)
        try:
            async with asyncio.timeout(deadline_s):
                await self._upload(settings.root + name, pieces, mark)
        except TimeoutError:
            raise self._failed(name, f"it took longer than {deadline_s:.0f} s") from None
        except FAULTS as error:
            raise self._failed(name, str(error)) from None

    async def close(self) -> None:
        await asyncio.to_thread(self._threads.shutdown)

    async def _upload(self, key: str, pieces: Sequence[Sequence[Buffer]], mark: str) -> None:
        client = self._client or administrative(self._settings)
        self._client = client
        where = {"Bucket": self._settings.bucket, "Key": key}
        begin = partial(client.create_multipart_upload, **where, Metadata={MARK: mark})
        upload = {**where, "UploadId": (await self._request(begin))["UploadId"]}
        try:
            sent = [
                self._request(partial(_send, client, upload, number, piece))
                for number, piece in enumerate(pieces, 1)
            ]
            done = await asyncio.gather(*sent)
            end = partial(client.complete_multipart_upload, **upload, IfNoneMatch="*")
            await self._request(partial(end, MultipartUpload={"Parts": done}))
        except FAULTS as error:
            # The answer to an earlier attempt of the client's may have been lost.
            if await self._is_ours(client, where, mark):
                return
            await self._request(partial(_give_up, client, upload))
            if code_of(error) == "PreconditionFailed":
                raise ObjectExists(key.removeprefix(self._settings.root)) from None
            raise

    async def _is_ours(self, client: "S3Client", where: dict[str, str], mark: str) -> bool:
        try:
            found = await self._request(partial(client.head_object, **where), Kind.HEAD)
        except ClientError as error:
            if code_of(error) == "404":
                return False
            raise
        return found["Metadata"].get(MARK) == mark

    async def _request(self, ask: Callable[[], _Found], kind: Kind = Kind.PART) -> _Found:
        self._meter.asked(kind)
        return await asyncio.get_running_loop().run_in_executor(self._threads, ask)

    def _failed(self, name: str, reason: str) -> StorageFailed:
        self._meter.counters.failures += 1
        return StorageFailed(f"upload of {name} to {self._settings.where}", reason)


def cut(parts: Sequence[Buffer], size: int) -> Iterator[list[Buffer]]:
    """The same bytes in pieces of this size, the last one shorter; nothing is copied."""
    piece: list[Buffer] = []
    room = size
    for part in parts:
        rest = memoryview(part)
        while len(rest) >= room:
            piece.append(rest[:room])
            yield piece
            rest = rest[room:]
            piece, room = [], size
        if len(rest):
            piece.append(rest)
            room -= len(rest)
    if piece:
        yield piece


def code_of(error: BotoCoreError | ClientError) -> str:
    """The store's word for it; of a HEAD only the status is known."""
    if not isinstance(error, ClientError):
        return ""
    return error.response.get("Error", {}).get("Code", "")


def _send(
    client: "S3Client", upload: dict[str, str], number: int, piece: Sequence[Buffer]
) -> "CompletedPartTypeDef":
    told: dict[str, Any] = {**upload, "PartNumber": number, **content(b"".join(piece))}
    return {"PartNumber": number, "ETag": client.upload_part(**told)["ETag"]}


def _give_up(client: "S3Client", upload: dict[str, str]) -> None:
    """What is left behind is swept by the bucket's own rule (`admin.py`)."""
    try:
        client.abort_multipart_upload(**upload)  # pyright: ignore[reportArgumentType]
    except FAULTS:
        return
