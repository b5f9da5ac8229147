"""Subscriptions as server-sent events: deliver, confirm, fail, each with where to resume."""

import asyncio
import re
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from functools import partial
from itertools import groupby
from typing import Annotated, Any, NamedTuple

from fastapi import APIRouter, Header, Query
from fastapi.responses import StreamingResponse
from msgspec.structs import replace
from pydantic import BaseModel, Field

from anabranch.apps.http.calls import Ask, Asking
from anabranch.apps.http.logs import Name
from anabranch.apps.http.models import ResponseModel, Start
from anabranch.apps.http.nodes import (
    begun,
    bounds_at_nodes,
    held_by_nodes,
    pushed_by_nodes,
    shards_of,
)
from anabranch.apps.http.problems import OF_LOG, problem
from anabranch.apps.http.reads import Base64
from anabranch.apps.http.records import Delivery, Encoding, Sized, portions, shown_portions
from anabranch.apps.http.refusals import EventOfAnotherLog
from anabranch.client.engines import Bounds
from anabranch.client.session import records as client
from anabranch.client.session.records import Deliver, Event
from anabranch.core.bolt.protocol.clients import Pushed
from anabranch.core.bolt.protocol.commands import Description
from anabranch.core.bolt.protocol.messages import Confirmed, Delivered, Failed, Subscribe
from anabranch.core.errors import (
    AnabranchError,
    BadRequest,
    OutOfRange,
    Overloaded,
    PositionTrimmed,
)
from anabranch.core.types import Position

router = APIRouter(tags=["records"])

_HEARTBEAT = b": alive\n\n"
_EVENT_ID = re.compile(r"(?P<log>[0-9]{1,15}):(?P<position>[0-9]{1,15})")
_EVENT_ID_CHARS_MAX = 80
_WINDOW_BYTES = 256 << 10
"""Of a stream: many that aren't read leave room for others of the same principal."""
_EXAMPLE = """\
event: deliver
id: 1:13
data: {"position":12,"value":"40 apples","key":"7","headers":[],"timestamp":1782907200000,\
"encoding":"text","origin":{"log":"orders","position":12},"id":"1-12","speculative":false}

event: confirm
id: 1:14
data: {"up_to":14}

event: fail
id: 1:14
data: {"since":14}
"""
_RESPONSES: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "`deliver`: the next record, and whether it is speculative. `confirm`: all "
        "below `up_to` is final. `fail`: forget what was delivered from `since` on, it comes anew. "
        "`ended`: a problem document, nothing more will come. An `id` is the "
        "log's number and the first position that isn't final yet; given back as `Last-Event-ID` "
        "it resumes there, with a `fail`, and is refused if the name is another log's by then.",
        "content": {"text/event-stream": {"schema": {"type": "string"}, "example": _EXAMPLE}},
    },
    **(
        OF_LOG
        | OutOfRange("orders", 99, 0, 12)
        | PositionTrimmed(3, 12)
        | EventOfAnotherLog("3:13", "orders--try", 7)
    ).documented,
}


class Confirm(ResponseModel):
    up_to: Position = Field(description="Everything delivered below it is final.")


class Fail(ResponseModel):
    since: Position = Field(description="Forget what was delivered from here on.")


@router.get(
    "/v1/logs/{log}/subscribe",
    response_class=StreamingResponse,
    summary="Have records pushed as they come",
    responses=_RESPONSES,
)
async def subscribe_log(
    name: Name,
    ask: Ask,
    start: Annotated[
        Start | None,
        Query(
            alias="from",
            description="A position, or a time in RFC 3339 to begin with what was committed then. "
            "By default what is settled from now on.",
        ),
    ] = None,
    speculative: Annotated[
        bool | None,
        Query(
            description="Also what lies past an undecided promotable fork, by default true; of a "
            "Belfast log what is only predicted, by default false. Erwin logs have nothing of that."
        ),
    ] = None,
    encoding: Base64 = None,
    last: Annotated[
        str | None,
        Header(
            alias="Last-Event-ID",
            max_length=_EVENT_ID_CHARS_MAX,
            description="The `id` of an event: resume there. It goes before `from`. A bare "
            "position is refused: give it as `from`.",
        ),
    ] = None,
) -> StreamingResponse:
    log = await ask.log(name)
    resumed = None if last is None else _position(last, log)
    begin = start if resumed is None else resumed
    backend = ask.front.backend
    if held_by_nodes(log):
        message = Subscribe(log.id, 0, bool(speculative), _WINDOW_BYTES * shards_of(log))
        await ask.permitted(message)
        opened, bounds = await bounds_at_nodes(ask, log)
        message = replace(message, start=await begun(ask, log, bounds, begin, bounds.tail))
        told = partial(_told_by_nodes, ask, log, encoding)
        feed = Feed(partial(pushed_by_nodes, opened), told)
    else:
        bounds = Bounds(log.start, log.settled, log.tail)
        first = await begun(ask, log, bounds, begin, bounds.settled)
        message = Subscribe(log.id, first, speculative is not False, _WINDOW_BYTES)
        await ask.permitted(message)
        feed = Feed(backend.stream, partial(_told, ask, log, encoding))
    events = _counted(ask, message, feed, resumed, log)
    headers = {"X-Accel-Buffering": "no"}
    return StreamingResponse(events, headers=headers, media_type="text/event-stream")


class Feed(NamedTuple):
    """Where the events of a subscription come from."""

    open: Callable[[Subscribe], AsyncGenerator[Any]]
    told: Callable[[Any], AsyncGenerator[bytes]]
    """Makes events of what came."""


def _position(event: str, log: Description) -> Position:
    """Where an event of this very log has its reader resume."""
    found = _EVENT_ID.fullmatch(event)
    if found is None:
        reason = f"ids of events are such as {_id(log, log.settled)}; a position goes into from="
        raise BadRequest("Last-Event-ID", reason)
    if int(found["log"]) != log.id:
        raise EventOfAnotherLog(event, log.name, log.id)
    return int(found["position"])


def _id(log: Description, resume_at: Position) -> str:
    """A log's number is never given again, as its name may be after a squash."""
    return f"{log.id}:{resume_at}"


async def _counted(
    ask: Asking,
    message: Subscribe,
    feed: Feed,
    resumed: Position | None,
    log: Description,
) -> AsyncGenerator[bytes]:
    """Events, among the subscriptions of the process as long as they come."""
    budgets, who = ask.front.budgets, ask.who
    most = ask.front.limits.subscription_bytes
    try:
        window = budgets.open_window(who, message.credit_bytes, most)
    except Overloaded as error:
        yield _event("ended", problem(error, ask.request_id))
        return
    try:
        message = replace(message, credit_bytes=window)
        async with aclosing(_events(ask, message, feed, resumed, log)) as events:
            async for event in events:
                yield event
    finally:
        budgets.close_window(who, window)


async def _events(
    ask: Asking,
    message: Subscribe,
    feed: Feed,
    resumed: Position | None,
    log: Description,
) -> AsyncGenerator[bytes]:
    """Until the subscription ends, the client goes, may not have it any more, or the server
    stops.
    """
    pushed = feed.open(message)
    if resumed is not None:
        # What was speculative when the connection broke may have become something else.
        yield _event("fail", Fail(since=resumed), _id(log, resumed))
    stopping = asyncio.ensure_future(ask.front.stopping.wait())
    revoked = asyncio.ensure_future(ask.revoked(message))
    coming = asyncio.ensure_future(anext(pushed))
    patience_s = ask.front.settings.heartbeat_ms / 1_000
    try:
        while True:
            await asyncio.wait(
                (coming, stopping, revoked),
                timeout=patience_s,
                return_when=asyncio.FIRST_COMPLETED,
            )
            if stopping.done():
                return
            if revoked.done():
                revoked.result()
            if not coming.done():
                yield _HEARTBEAT
                continue
            async for event in feed.told(coming.result()):
                yield event
            coming = asyncio.ensure_future(anext(pushed))
    except AnabranchError as error:
        yield _event("ended", problem(error, ask.request_id))
    finally:
        for each in (stopping, revoked, coming):
            each.cancel()
        await asyncio.gather(revoked, coming, return_exceptions=True)
        await pushed.aclose()


async def _told(
    ask: Asking, log: Description, encoding: Encoding | None, pushed: Pushed
) -> AsyncGenerator[bytes]:
    match pushed:
        case Confirmed(up_to):
            yield _event("confirm", Confirm(up_to=up_to), _id(log, up_to))
        case Failed(since):
            yield _event("fail", Fail(since=since), _id(log, since))
        case Delivered(runs, batches, speculative):
            ask.renew()
            async for portion in portions(ask, runs, batches, encoding, log.name):
                yield b"".join(_delivered(each, log, speculative=speculative) for each in portion)


async def _told_by_nodes(
    ask: Asking, log: Description, encoding: Encoding | None, pushed: list[Event]
) -> AsyncGenerator[bytes]:
    """Records together where they follow each other; between them what becomes of some."""
    ask.renew()
    for speculative, events in groupby(pushed, _speculative):
        if speculative is not None:
            records = [each.record for each in events if isinstance(each, Deliver)]
            async for portion in shown_portions(records, log, encoding):
                yield b"".join(_delivered(each, log, speculative=speculative) for each in portion)
            continue
        for event in events:
            match event:
                case client.Confirm(up_to):
                    yield _event("confirm", Confirm(up_to=up_to), _id(log, up_to))
                case client.Fail(since):
                    yield _event("fail", Fail(since=since), _id(log, since))
                case Deliver():
                    raise AssertionError("records are told together")


def _speculative(event: Event) -> bool | None:
    """None if it is no record."""
    return event.speculative if isinstance(event, Deliver) else None


def _delivered(sized: Sized, log: Description, *, speculative: bool) -> bytes:
    record = sized.record
    resume_at = None if speculative else _id(log, record.position + 1)
    return _event("deliver", Delivery(speculative=speculative, **dict(record)), resume_at)


def _event(name: str, content: BaseModel, id: str | None = None) -> bytes:
    """Without an id the one before stays: a speculative record is none to resume after."""
    line = "" if id is None else f"id: {id}\n"
    return f"event: {name}\n{line}data: {content.model_dump_json()}\n\n".encode()
