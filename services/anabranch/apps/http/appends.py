"""Appends: one request is one batch, taken whole or not at all."""

import time
from http import HTTPStatus
from typing import Annotated, Any, NamedTuple
from urllib.parse import unquote, unquote_to_bytes

from fastapi import APIRouter, Depends, Header, Query, Request, Response
from pydantic import Field

from anabranch.apps.http import entry, records
from anabranch.apps.http.calls import Ask, OnlyOnce
from anabranch.apps.http.logs import Name
from anabranch.apps.http.models import WAIT_MS_MAX, Told
from anabranch.apps.http.problems import OF_LOG, ON_CHANGE
from anabranch.core.bolt.logs.forest import SEPARATOR
from anabranch.core.errors import (
    AppendBlocked,
    BadRequest,
    BatchTooLarge,
    QuotaExceeded,
    RecordTooLarge,
    SequenceGap,
    TooManyHeaders,
)
from anabranch.core.producers import REQUEST_EPOCH, request_identity
from anabranch.core.records.record import Record, encode
from anabranch.core.types import MS

_INT31_END, _INT63_END = 1 << 31, 1 << 63

router = APIRouter(tags=["records"])


class Appended(Told):
    """Durable and in its place. The records follow each other from `position` on."""

    log: str
    count: int
    position: int | None = Field(
        description="Of the first record; null while an undecided promotable fork may move it."
    )
    receipt: str | None = Field(description="Redeemed for the position after the decision.")


_RESPONSES: dict[int | str, dict[str, Any]] = {
    202: {
        "model": Appended,
        "description": "Appended, its position withheld while a promotable fork is undecided",
    },
    **(
        OF_LOG
        | ON_CHANGE
        | AppendBlocked("orders--view", "orders--try")
        | SequenceGap("orders", 7, 12, 14)
        | RecordTooLarge(2_000_000, 1_048_576)
        | BatchTooLarge(5_000_000, 4_194_304)
        | TooManyHeaders("a record", 8_000_000, 5_000, "record_headers_max")
        | QuotaExceeded("orders", "append_bytes_per_s", 1_048_576, 1_050_000, 2)
    ).documented,
}
_BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            entry.JSON: {
                "schema": {"$ref": "#/components/schemas/RecordsIn"},
                "examples": {
                    "text": {"value": {"records": [{"value": "40 apples", "key": "7"}]}},
                    "bytes": {"value": {"records": [{"value": "/wA=", "encoding": "base64"}]}},
                },
            },
            entry.NDJSON: {
                "schema": {"$ref": "#/components/schemas/RecordIn"},
                "example": '{"value": "40 apples"}\n{"value": "50 pears"}\n',
            },
            entry.BYTES: {"schema": {"type": "string", "format": "binary"}},
        },
    }
}


class Producer(NamedTuple):
    """Who sends, in which order: a batch sent again under the same numbers isn't appended again."""

    id: int = -1
    epoch: int = -1
    sequence: int = -1

    @property
    def named(self) -> bool:
        return self.id >= 0


async def producer(
    name: Name,
    once: OnlyOnce,
    id: Annotated[
        int | None,
        Header(
            alias="Producer-Id",
            ge=0,
            lt=_INT63_END,
            description="A random number. For a stream of appends, in place of Idempotency-Key.",
        ),
    ] = None,
    epoch: Annotated[int, Header(alias="Producer-Epoch", ge=0, lt=REQUEST_EPOCH)] = 0,
    sequence: Annotated[
        int | None,
        Header(
            alias="Producer-Sequence",
            ge=0,
            lt=_INT31_END,
            description="How many records this producer has appended to this log before.",
        ),
    ] = None,
) -> Producer:
    if id is not None and sequence is not None and not once.keyed:
        return Producer(id, epoch, sequence)
    if id is not None or sequence is not None:
        reason = "Producer-Id and Producer-Sequence come together, and without Idempotency-Key"
        raise BadRequest("header", reason)
    if once.key is None:
        return Producer()
    return Producer(request_identity(name, once.key), REQUEST_EPOCH, 0)


@router.post(
    "/v1/logs/{log}/records",
    status_code=201,
    summary="Append records, all or none",
    openapi_extra=_BODY,
    responses=_RESPONSES,
)
async def append_records(
    name: Name,
    request: Request,
    response: Response,
    ask: Ask,
    once: OnlyOnce,
    sender: Annotated[Producer, Depends(producer)],
    key: Annotated[
        str | None,
        Query(description="Of the one record of an octet-stream body; it may be any bytes."),
    ] = None,
    wait_ms: Annotated[
        int | None,
        Query(ge=0, le=WAIT_MS_MAX, description="How long to wait while the log takes no appends."),
    ] = None,
) -> Appended:
    objects_max = ask.front.limits.batch_records_max
    media, body = request.headers.get("content-type", ""), await request.body()
    found = _records(media, body, None if key is None else _key(request), objects_max)
    batch = encode(
        found,
        producer_id=sender.id,
        producer_epoch=sender.epoch,
        base_sequence=sender.sequence,
        now=time.time_ns() // MS,
    )
    done = await ask.append(name, once, batch, wait_ms, numbered=sender.named)
    log = name.replace("@", SEPARATOR, 1)
    if done.receipt is None:
        return Appended(log=log, count=len(found), position=done.position, receipt=None)
    response.status_code = HTTPStatus.ACCEPTED
    receipt = done.receipt.text
    return Appended(log=log, count=len(found), position=None, receipt=receipt)


def _key(request: Request) -> bytes:
    """The key's own bytes: the framework would replace those that aren't UTF-8."""
    query: bytes = request.scope["query_string"]
    pairs = (part.replace(b"+", b" ").partition(b"=") for part in query.split(b"&"))
    return [unquote_to_bytes(value) for name, _, value in pairs if unquote(name) == "key"][-1]


def _records(media: str, body: bytes, key: bytes | None, objects_max: int) -> list[Record]:
    """The door has seen to it that it is one of these."""
    match media.partition(";")[0].strip().lower():
        case entry.BYTES:
            return [Record(body, key)]
        case entry.NDJSON:
            records.check_cost(body, objects_max, lines=True)
            found = records.from_lines(body)
        case _:
            records.check_cost(body, objects_max, lines=False)
            found = records.from_json(body)
    if key is not None:
        raise BadRequest("query.key", f"only an {entry.BYTES} body has its key outside")
    return found
