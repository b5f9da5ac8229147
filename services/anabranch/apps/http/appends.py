"""Appends: one request is one batch, taken whole or not at all."""

import time
from http import HTTPStatus
from typing import Annotated, Any, NamedTuple
from urllib.parse import unquote, unquote_to_bytes

from fastapi import APIRouter, Depends, Header, Query, Request, Response

from anabranch.apps.http import entry, records
from anabranch.apps.http.calls import KEY, Ask, Once, OnlyOnce
from anabranch.apps.http.jobs.marked import (
    MarkedAppended,
    append_marked,
    marked_status,
    writer_mark,
)
from anabranch.apps.http.logs import Name
from anabranch.apps.http.models import WAIT_MS_MAX
from anabranch.apps.http.nodes import SHARD_CHARS_MAX, append_at_nodes, taken_by_nodes
from anabranch.apps.http.problems import OF_LOG, ON_CHANGE
from anabranch.client.engines import BELFAST
from anabranch.core.bolt.logs.forest import SEPARATOR
from anabranch.core.bolt.protocol.commands import Description
from anabranch.core.bolt.protocol.marks import WriterMark
from anabranch.core.errors import (
    AppendBlocked,
    BadRequest,
    BatchTooLarge,
    LazyAppendsOnly,
    NoWriterMarks,
    PartDiffers,
    PartGap,
    QuotaExceeded,
    RecordTooLarge,
    RecordVoided,
    Refresh,
    SequenceGap,
    ShardAway,
    ShardFailed,
    ShardLeft,
    TooMany,
    TooManyHeaders,
    UnknownLog,
    UnknownShard,
    WriterConflict,
)
from anabranch.core.producers import REQUEST_EPOCH, request_identity
from anabranch.core.records.record import Record, encode
from anabranch.core.types import MS

_INT31_END, _INT63_END = 1 << 31, 1 << 63

router = APIRouter(tags=["records"])


_RESPONSES: dict[int | str, dict[str, Any]] = {
    200: {
        "model": MarkedAppended,
        "description": "Nothing was appended now: the log had this batch of the writer",
    },
    202: {
        "model": records.Appended,
        "description": "Appended, its position withheld while a promotable fork is undecided, or "
        "not bound yet",
    },
    **(
        OF_LOG
        | ON_CHANGE
        | AppendBlocked("orders--view", "orders--try")
        | LazyAppendsOnly("clicks")
        | SequenceGap("orders", 7, 12, 14)
        | RecordTooLarge(2_000_000, 1_048_576)
        | BatchTooLarge(5_000_000, 4_194_304)
        | TooManyHeaders("a record", 8_000_000, 5_000, "record_headers_max")
        | QuotaExceeded("orders", "append_bytes_per_s", 1_048_576, 1_050_000, 2)
        | UnknownShard("shard-9")
        | ShardAway("shard-1", "it has no majority of its replicas")
        | ShardFailed("shard-1")
        | ShardLeft("shard-1")
        | RecordVoided("shard-1")
        | PartGap("orders", "query-7f3c", 3, 0, 1, 2)
        | PartDiffers("orders", "query-7f3c", 3, 0, 1, "it was appended with other records")
        | WriterConflict("orders", "query-7f3c", 3, "its part 0 was begun in orders")
        | NoWriterMarks("ticks", "it is a log of the belfast engine")
        | TooMany("writers of orders", 1_000, "writers_per_log_max")
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


class Choices(NamedTuple):
    """What an append's query says."""

    key: bool
    wait_ms: int | None
    shard: str | None
    sync: bool


async def choices(
    key: Annotated[
        str | None,
        Query(description="Of the one record of an octet-stream body; it may be any bytes."),
    ] = None,
    wait_ms: Annotated[
        int | None,
        Query(ge=0, le=WAIT_MS_MAX, description="How long to wait while the log takes no appends."),
    ] = None,
    shard: Annotated[
        str | None,
        Query(
            max_length=SHARD_CHARS_MAX,
            description="Of a Belfast log: where to append. Without one, where least is to be "
            "done; an Idempotency-Key needs one, for each shard knows only its own keys.",
        ),
    ] = None,
    sync: Annotated[
        bool,
        Query(
            description="Wait for the position where the log binds it after it has acknowledged, "
            "as Erwin logs and lazy appends do: up to the deadline, and then it is null."
        ),
    ] = False,
) -> Choices:
    return Choices(key is not None, wait_ms, shard, sync)


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
    chosen: Annotated[Choices, Depends(choices)],
    mark: Annotated[WriterMark | None, Depends(writer_mark)],
) -> MarkedAppended | records.Appended:
    objects_max = ask.front.limits.batch_records_max
    media, body = request.headers.get("content-type", ""), await request.body()
    found = _records(media, body, _key(request) if chosen.key else None, objects_max)
    if mark is not None:
        _check_marked(sender, chosen)
        appended = await append_marked(ask, name, found, mark, chosen.wait_ms)
        response.status_code = marked_status(appended)
        return appended
    log = await _known(ask, name)
    if log is not None and taken_by_nodes(log):
        _check_offered(log, sender, chosen, once)
        first = await append_at_nodes(ask, log, found, once.key, chosen.shard, sync=chosen.sync)
        appended = records.Appended(
            log=log.name, count=len(found), position=first.position, receipt=first.receipt
        )
    else:
        _check_no_shard(chosen)
        batch = encode(
            found,
            producer_id=sender.id,
            producer_epoch=sender.epoch,
            base_sequence=sender.sequence,
            now=time.time_ns() // MS,
        )
        done = await ask.append(name, once, batch, chosen.wait_ms, numbered=sender.named)
        appended = records.Appended(
            log=name.replace("@", SEPARATOR, 1),
            count=len(found),
            position=done.position if done.receipt is None else None,
            receipt=None if done.receipt is None else done.receipt.text,
        )
    if appended.position is None:
        response.status_code = HTTPStatus.ACCEPTED
    return appended


def _check_marked(sender: Producer, chosen: Choices) -> None:
    """Raise if the append asks for what appends with marks don't have."""
    if sender.named:
        reason = f"it takes the place of {KEY} and Producer-Id: send one of them"
        raise BadRequest("query.writer", reason)
    _check_no_shard(chosen)


async def _known(ask: Ask, name: str) -> Description | None:
    """None if there is no such log any more: a key may still know what was appended to it."""
    try:
        return await ask.log(name)
    except (Refresh, UnknownLog):
        return None


def _check_offered(log: Description, sender: Producer, chosen: Choices, once: Once) -> None:
    """Raise if the append asks for what only other logs' appends have."""
    if sender.named and not once.keyed:
        reason = f"{log.name} takes no numbers of producers: give an Idempotency-Key"
        raise BadRequest("header.Producer-Id", reason)
    if chosen.wait_ms is not None:
        reason = "only direct appends to Bolt logs wait for forks: Deadline-Ms bounds all others"
        raise BadRequest("query.wait_ms", reason)
    if log.engine != BELFAST:
        _check_no_shard(chosen)
    elif once.keyed and chosen.shard is None:
        reason = f"each shard of {log.name} knows only its own keys: name one with an {KEY}"
        raise BadRequest("query.shard", reason)


def _check_no_shard(chosen: Choices) -> None:
    if chosen.shard is not None:
        raise BadRequest("query.shard", "only the shards of Belfast logs can be named")


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
