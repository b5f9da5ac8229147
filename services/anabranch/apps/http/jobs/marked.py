"""Appends with a writer's mark: done once, whoever sends them and however late."""

import time
from http import HTTPStatus
from typing import Annotated

from fastapi import Query
from pydantic import Field

from anabranch.apps.http.calls import Ask
from anabranch.apps.http.logs import NAME_CHARS_MAX
from anabranch.apps.http.models import Whole
from anabranch.apps.http.records import Appended
from anabranch.core.bolt.logs.forest import SEPARATOR
from anabranch.core.bolt.protocol.marks import AlreadyAppended, WriterMark
from anabranch.core.errors import BadRequest
from anabranch.core.records.record import Record, encode
from anabranch.core.types import MS

_INT31_END = 1 << 31


class MarkedAppended(Appended):
    """Of an append with a writer's mark."""

    repeated: bool = Field(
        description="True if nothing was appended now, because the log had this batch. Then "
        "position and receipt are both null if the log doesn't know any more where it is."
    )
    complete: int | None = Field(
        description="Of a repeated append: the writer's highest complete version, if it has one."
    )


async def writer_mark(
    writer: Annotated[
        str | None,
        Query(
            max_length=NAME_CHARS_MAX,
            description="Who appends, by a name of its own choice: the log has each batch (writer, "
            "version, part, batch) once, until the writer is released. It stands in the place of "
            "an Idempotency-Key, and its memory has no end.",
        ),
    ] = None,
    version: Annotated[
        Whole | None, Query(description="A number that rises; needed with a writer.")
    ] = None,
    part: Annotated[
        int | None, Query(ge=0, lt=_INT31_END, description="Of the version; by default 0.")
    ] = None,
    batch: Annotated[
        int | None,
        Query(
            ge=0,
            lt=_INT31_END,
            description="Which batch of the part this request is, from 0 on; by default 0.",
        ),
    ] = None,
) -> WriterMark | None:
    """The mark of an append, if its query says one."""
    if writer is not None and version is not None:
        return WriterMark(writer, version, part or 0, batch or 0)
    if writer is not None:
        raise BadRequest("query.version", "an append of a writer names the version as well")
    if version is not None or part is not None or batch is not None:
        raise BadRequest("query.writer", "version, part and batch are numbers of a writer: name it")
    return None


async def append_marked(
    ask: Ask, name: str, found: list[Record], mark: WriterMark, wait_ms: int | None
) -> MarkedAppended:
    batch = encode(found, now=time.time_ns() // MS, retried=True)
    done = await ask.append_marked(name, batch, mark, wait_ms)
    known = done if isinstance(done, AlreadyAppended) else None
    return MarkedAppended(
        log=name.replace("@", SEPARATOR, 1),
        count=len(found),
        position=done.position if done.receipt is None else None,
        receipt=None if done.receipt is None else done.receipt.text,
        repeated=known is not None,
        complete=known.complete if known is not None and known.complete >= 0 else None,
    )


def marked_status(appended: MarkedAppended) -> HTTPStatus:
    if appended.repeated:
        return HTTPStatus.OK
    return HTTPStatus.ACCEPTED if appended.position is None else HTTPStatus.CREATED
