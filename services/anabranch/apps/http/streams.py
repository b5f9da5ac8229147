"""Subscriptions as server-sent events: deliver, confirm, fail, each with where to resume."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Annotated, Any

from fastapi import APIRouter, Header, Query
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, Field

from anabranch.apps.http.asking import Ask, Asking
from anabranch.apps.http.logs import Name
from anabranch.apps.http.models import Told, Whole
from anabranch.apps.http.problems import OF_LOG, problem
from anabranch.apps.http.reads import Base64
from anabranch.apps.http.records import Delivery, Encoding, portions
from anabranch.core.errors import AnabranchError, OutOfRange
from anabranch.core.types import Position
from anabranch.core.wire.messages import Confirmed, Delivered, Failed, Subscribe
from anabranch.shell.local import Pushed

router = APIRouter(tags=["records"])

_HEARTBEAT = b": alive\n\n"
_EXAMPLE = """\
event: deliver
id: 13
data: {"position":12,"value":"40 apples","key":"7","headers":[],"timestamp":1782907200000,\
"encoding":"text","origin":{"log":"orders","position":12},"id":"1-12","speculative":false}

event: confirm
id: 14
data: {"up_to":14}

event: fail
id: 14
data: {"since":14}
"""
_RESPONSES: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "`deliver`: the next record, and whether it is speculative. `confirm`: all "
        "below `up_to` is final. `fail`: forget what was delivered from `since` on, it comes anew. "
        "`ended`: a problem document, nothing more will come. An `id` is the first position that "
        "isn't final yet; given back as `Last-Event-ID` it resumes there, with a `fail`.",
        "content": {"text/event-stream": {"schema": {"type": "string"}, "example": _EXAMPLE}},
    },
    **(OF_LOG | OutOfRange("orders", 99, 0, 12)).documented,
}


class Confirm(Told):
    up_to: Position = Field(description="Everything delivered below it is final.")


class Fail(Told):
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
        Whole | None, Query(alias="from", description="By default what is settled from now on.")
    ] = None,
    speculative: Annotated[
        bool, Query(description="Also what lies past an undecided promotable fork.")
    ] = True,
    encoding: Base64 = None,
    last: Annotated[
        Whole | None,
        Header(alias="Last-Event-ID", description="Resume there; it goes before `from`."),
    ] = None,
) -> StreamingResponse:
    log = await ask.log(name)
    begin = next((each for each in (last, start) if each is not None), log.settled)
    if not log.start <= begin <= log.tail:
        raise OutOfRange(log.name, begin, log.start, log.tail)
    message = Subscribe(log.id, begin, speculative)
    await ask.permitted(message)
    events = _events(ask, message, encoding, last, log.name)
    headers = {"X-Accel-Buffering": "no"}
    return StreamingResponse(events, headers=headers, media_type="text/event-stream")


async def _events(
    ask: Asking,
    message: Subscribe,
    encoding: Encoding | None,
    resumed: Position | None,
    log: str,
) -> AsyncGenerator[bytes]:
    """Until the subscription ends, the client goes, may not have it any more, or the server
    stops.
    """
    pushed = ask.front.backend.stream(message)
    if resumed is not None:
        # What was speculative when the connection broke may have become something else.
        yield _event("fail", Fail(since=resumed), resumed)
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
            async for event in _told(ask, coming.result(), encoding, log):
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
    ask: Asking, pushed: Pushed, encoding: Encoding | None, log: str
) -> AsyncGenerator[bytes]:
    match pushed:
        case Confirmed(up_to):
            yield _event("confirm", Confirm(up_to=up_to), up_to)
        case Failed(since):
            yield _event("fail", Fail(since=since), since)
        case Delivered(runs, batches, speculative):
            ask.renew()
            async for portion in portions(ask, runs, batches, encoding, log):
                yield b"".join(
                    _event(
                        "deliver",
                        Delivery(speculative=speculative, **dict(record)),
                        None if speculative else record.position + 1,
                    )
                    for record, _ in portion
                )


def _event(name: str, content: BaseModel, resume_at: Position | None = None) -> bytes:
    """Without an id the one before stays: a speculative record is none to resume after."""
    id = "" if resume_at is None else f"id: {resume_at}\n"
    return f"event: {name}\n{id}data: {content.model_dump_json()}\n\n".encode()
