"""Reads: a page of JSON, or all of it line by line."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import StreamingResponse
from pydantic import Field

from anabranch.apps.http import entry
from anabranch.apps.http.calls import Ask, Asking
from anabranch.apps.http.logs import Name
from anabranch.apps.http.models import WAIT_MS_MAX, ResponseModel, Since, Start
from anabranch.apps.http.nodes import Opened, held_by_nodes, read_at_nodes
from anabranch.apps.http.problems import OF_LOG, Problem, problem
from anabranch.apps.http.records import Encoding, RecordOut, Sized, portions
from anabranch.core.bolt.protocol.commands import Description
from anabranch.core.bolt.protocol.messages import Read, Records
from anabranch.core.errors import (
    AnabranchError,
    BatchUnreadable,
    OutOfRange,
    PositionTrimmed,
    QuotaExceeded,
    ReadBlocked,
    RecordsDamaged,
)
from anabranch.core.limits import MIB
from anabranch.core.types import Milliseconds, Position

LIMIT_DEFAULT, LIMIT_MAX = 100, 10_000
_STREAMED_BYTES = MIB
_EVERYTHING = (1 << 31) - 1

router = APIRouter(tags=["records"])

Base64 = Annotated[
    Literal[Encoding.BASE64] | None,
    Query(
        description="Without it, records that are text are given as text and others in base64: "
        "each says which it is."
    ),
]


class Page(ResponseModel):
    log: str
    records: list[RecordOut]
    next: int = Field(description="Where to read on.")
    start: int = Field(description="The first position that can be read.")
    tail: int
    settled: int = Field(
        description="Reads end here; of an Erwin log also at `tail`, once it is ordered."
    )


class BrokenOff(ResponseModel):
    """The last line of a read that couldn't be finished."""

    problem: Problem


_RESPONSES: dict[int | str, dict[str, Any]] = {
    200: {
        "model": Page,
        "description": "Records; with `Accept: application/x-ndjson` one a line, all that are "
        "settled. A line with `problem` in it, always the last, says that a read broke off.",
        "content": {entry.NDJSON: {"schema": {"$ref": "#/components/schemas/RecordOut"}}},
    },
    **(
        OF_LOG
        | OutOfRange("orders", 99, 0, 12)
        | ReadBlocked("orders", 12, "orders--try")
        | RecordsDamaged("orders", 40, 41, "orders/data/1/7", "its checksum is wrong")
        | BatchUnreadable("orders", 40, 41, "a batch has 8000000 headers")
        | QuotaExceeded("orders", "read_bytes_per_s", 1_048_576, 1_050_000, 2)
        | PositionTrimmed(3, 12)
    ).documented,
}


@router.get(
    "/v1/logs/{log}/records", response_model=Page, summary="Read records", responses=_RESPONSES
)
async def read_records(
    name: Name,
    request: Request,
    ask: Ask,
    start: Annotated[
        Start | None,
        Query(
            alias="from",
            description="A position, or a time in RFC 3339 to begin with what was committed then. "
            "By default the first that can be read.",
        ),
    ] = None,
    limit: Annotated[
        int | None,
        Query(
            ge=1,
            le=_EVERYTHING,
            description=f"Records at most: of JSON {LIMIT_DEFAULT} by default and {LIMIT_MAX} at "
            "most, of lines by default all.",
        ),
    ] = None,
    page_bytes: Annotated[
        int,
        Query(
            alias="bytes",
            ge=1,
            le=_EVERYTHING,
            description="JSON ends with the record whose content, as it is written in JSON, "
            "reaches so many.",
        ),
    ] = MIB,
    wait_ms: Annotated[
        int, Query(ge=0, le=WAIT_MS_MAX, description="How long to wait for the first record.")
    ] = 0,
    encoding: Base64 = None,
) -> Page | Response:
    accept = request.headers.get("accept", "")
    log = await ask.log(name)
    lines = any(each.partition(";")[0].strip() == entry.NDJSON for each in accept.split(","))
    if lines:
        count, bytes_max = limit or _EVERYTHING, _STREAMED_BYTES
    else:
        count = min(limit or LIMIT_DEFAULT, LIMIT_MAX)
        bytes_max = min(page_bytes, ask.front.limits.read_bytes_max)
    if held_by_nodes(log):
        opened = await read_at_nodes(ask, log, start, count, wait_ms, encoding)
    else:
        opened = await _opened(ask, log, start, count, bytes_max, wait_ms, encoding)
    if lines:
        return StreamingResponse(_lines(ask, opened.flow), media_type=entry.NDJSON)
    found = await gathered(opened.flow, bytes_max)
    end = found[-1].position + 1 if found else opened.next
    return Page(
        log=log.name,
        records=found,
        next=end,
        start=opened.start,
        # What was waited for lies behind where the log ended before that.
        tail=max(opened.tail, end),
        settled=max(opened.settled, end),
    )


async def _opened(
    ask: Asking,
    log: Description,
    start: Position | Since | None,
    count: int,
    bytes_max: int,
    wait_ms: Milliseconds,
    encoding: Encoding | None,
) -> Opened:
    """The first answer decides the status: a stream that has begun can't be refused any more."""
    begin = log.start if start is None else await ask.position(log, start)
    first = await _read(ask, log, begin, count, bytes_max, wait_ms)
    flow = _flow(ask, log, first, count, bytes_max, encoding)
    return Opened(first.start, first.settled, first.tail, first.next, flow)


async def _read(
    ask: Asking,
    log: Description,
    start: Position,
    count: int,
    bytes_max: int,
    wait_ms: Milliseconds = 0,
) -> Records:
    message = Read(log.id, start, count, bytes_max, wait_ms)
    return await ask.call(message, Records, f"read {log.name}", wait_ms)


async def _flow(
    ask: Asking,
    log: Description,
    answer: Records,
    left: int,
    bytes_max: int,
    encoding: Encoding | None,
) -> AsyncGenerator[list[Sized]]:
    """Answer after answer, up to where the log was settled at the first."""
    end = answer.settled
    while True:
        async for portion in portions(ask, answer.runs, answer.batches, encoding, log.name):
            left -= len(portion)
            yield portion
        if left <= 0 or not answer.runs or answer.next >= end:
            return
        answer = await _read(ask, log, answer.next, min(left, end - answer.next), bytes_max)


async def gathered(flow: AsyncGenerator[list[Sized]], bytes_max: int) -> list[RecordOut]:
    found: list[RecordOut] = []
    size = 0
    async with aclosing(flow):
        try:
            async for portion in flow:
                for record, record_bytes in portion:
                    found.append(record)
                    size += record_bytes
                    if size >= bytes_max:
                        return found
        except (BatchUnreadable, RecordsDamaged):
            # A page ends before what can't be read; the next one begins with the error.
            if not found:
                raise
    return found


async def _lines(ask: Asking, flow: AsyncGenerator[list[Sized]]) -> AsyncGenerator[bytes]:
    try:
        async with aclosing(flow):
            async for portion in flow:
                ask.renew()
                yield b"".join(record.model_dump_json().encode() + b"\n" for record, _ in portion)
    except AnabranchError as error:
        broken = BrokenOff(problem=problem(error, ask.request_id))
        yield broken.model_dump_json().encode() + b"\n"
