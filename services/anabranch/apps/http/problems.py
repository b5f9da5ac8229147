"""Every failure as a problem document (RFC 9457), as it is sent and as OpenAPI describes it."""

from collections.abc import Sequence
from http import HTTPStatus
from itertools import chain
from typing import Any, NamedTuple

from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import BaseModel, ConfigDict, Field
from starlette.exceptions import HTTPException

from anabranch.apps.http.advice import WORDS
from anabranch.apps.http.refusals import (
    BodyTooLarge,
    BodyTooSlow,
    ForeignOrigin,
    HeadersTooLarge,
    MalformedBody,
    MethodNotAllowed,
    NoSuchPath,
    UnsupportedMedia,
)
from anabranch.core.errors import (
    AnabranchError,
    BadRequest,
    DeadlineExceeded,
    Fact,
    Forbidden,
    OutcomeUnknown,
    Overloaded,
    Promoted,
    RequestForgotten,
    RequestReused,
    Retry,
    Squashed,
    StorageFailed,
    StorageFull,
    Unauthenticated,
    Unauthorized,
    Unavailable,
    UnknownLog,
    WrongEngine,
    reworded,
)
from anabranch.shell.telemetry.log import Log

MEDIA_TYPE = "application/problem+json"
REQUEST_ID = "request_id"
"""Where a request's scope keeps its id."""
RETRY_AFTER_S = 1

_URN = "urn:anabranch:problem:"
_FAULTS_MAX = 20


class Fault(BaseModel):
    """One thing that is wrong with a request."""

    model_config = ConfigDict(frozen=True)

    where: str = Field(description="The parameter or field.", examples=["query.limit"])
    reason: str


class Problem(BaseModel):
    """What was asked, what stood in the way, what to do."""

    model_config = ConfigDict(frozen=True)

    type: str = Field(description="Names the kind of problem, as `code` does.")
    title: str = Field(description="The kind of problem in words.")
    status: int
    detail: str = Field(description="What happened this time, and what to do about it.")
    instance: str = Field(description="Names this request; the header X-Request-Id has its id.")
    code: str = Field(description="Stable: programs decide by it.")
    advice: str = Field(description="`retry`, `refresh`, `stop`, `change the request`, ...")
    facts: dict[str, Fact] = Field(description="The particulars in `detail`, one by one.")
    faults: list[Fault] = Field(description="All that is wrong with an invalid request.")


def problem(error: AnabranchError, request_id: str, faults: Sequence[Fault] = ()) -> Problem:
    return Problem(
        type=_URN + error.code,
        title=error.code.replace("-", " ").capitalize(),
        status=error.status,
        detail=reworded(error, WORDS),
        instance=f"urn:anabranch:request:{request_id}",
        code=error.code,
        advice=error.advice,
        facts=error.facts,
        faults=list(faults),
    )


def answer(error: AnabranchError, request_id: str, faults: Sequence[Fault] = ()) -> Response:
    """The response that tells of an error."""
    headers: dict[str, str] = {}
    if isinstance(error, Retry):
        headers["Retry-After"] = str(_retry_after_s(error))
    if error.status == HTTPStatus.UNAUTHORIZED:
        headers["WWW-Authenticate"] = 'Bearer realm="anabranch"'
    if isinstance(error, MethodNotAllowed):
        headers["Allow"] = str(error.facts["allowed"])
    content = problem(error, request_id, faults).model_dump_json()
    return Response(content, error.status, headers, MEDIA_TYPE)


def _retry_after_s(error: Retry) -> int:
    """In whole seconds, which is all that the header can say."""
    asked_ms = error.facts.get("retry_after_ms")
    return -(-asked_ms // 1_000) if isinstance(asked_ms, int) else RETRY_AFTER_S


async def refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, AnabranchError)
    return answer(error, _id_of(request))


async def invalid(request: Request, error: Exception) -> Response:
    """Parameters or a body that aren't what OpenAPI says."""
    assert isinstance(error, RequestValidationError)
    found = error.errors()
    unreadable = next((each for each in found if each["type"] == "json_invalid"), None)
    if unreadable is not None:
        why = unreadable.get("ctx", {}).get("error", unreadable["msg"])
        return answer(MalformedBody(f"it isn't JSON: {why}"), _id_of(request))
    faults = [
        Fault(where=".".join(map(str, each["loc"])), reason=each["msg"])
        for each in found[:_FAULTS_MAX]
    ]
    return answer(BadRequest(faults[0].where, faults[0].reason), _id_of(request), faults)


async def unrouted(request: Request, error: Exception) -> Response:
    """What the router refuses: unknown paths, methods, bodies that aren't text at all."""
    assert isinstance(error, HTTPException)
    path = request.url.path
    match error.status_code:
        case HTTPStatus.NOT_FOUND:
            told: AnabranchError = NoSuchPath(path)
        case HTTPStatus.METHOD_NOT_ALLOWED:
            told = MethodNotAllowed(path, request.method, ", ".join(_methods(request)))
        case _:
            told = MalformedBody(error.detail)
    return answer(told, _id_of(request))


async def failed(log: Log, request: Request, error: Exception) -> Response:
    """A bug of ours: the caller learns only that, the log gets it, and then the trace."""
    id = _id_of(request)
    log.error("a request failed", request=id, path=request.url.path, error=repr(error))
    return answer(AnabranchError(reason=f"the server failed: see request {id} in its log"), id)


def _id_of(request: Request) -> str:
    return request.scope["state"][REQUEST_ID]


def _methods(request: Request) -> list[str]:
    """Of every route of a path: each route alone only knows its own."""
    routes: list[APIRoute] = request.app.state.routes
    path = request.scope["path"]
    served = (route.methods or () for route in routes if route.path_regex.match(path))
    return sorted(chain.from_iterable(served))


class Refusals(NamedTuple):
    """Samples of the errors that operations of one sort may answer."""

    samples: tuple[AnabranchError, ...]

    def __or__(self, others: "Refusals | AnabranchError") -> "Refusals":
        more = others.samples if isinstance(others, Refusals) else (others,)
        return Refusals((*self.samples, *more))

    @property
    def documented(self) -> dict[int | str, dict[str, Any]]:
        """As OpenAPI wants them: by status, each with its documents as examples."""
        responses: dict[int | str, dict[str, Any]] = {}
        for sample in self.samples:
            status = HTTPStatus(sample.status)
            response = responses.setdefault(
                sample.status,
                {
                    "description": status.phrase,
                    "content": {
                        MEDIA_TYPE: {
                            "schema": {"$ref": "#/components/schemas/Problem"},
                            "examples": {},
                        }
                    },
                },
            )
            shown = problem(sample, "1f0a6c3b9d2e4857").model_dump()
            response["content"][MEDIA_TYPE]["examples"][sample.code] = {"value": shown}
        return responses


ANY = Refusals(
    (
        Unauthorized(),
        Unauthenticated("its time is over", "anabranch"),
        Forbidden("system:serviceaccount:shop:web", "read", "logs", "orders", "shop"),
        ForeignOrigin("Origin", "https://example.org"),
        BadRequest("query.limit", "Input should be greater than or equal to 1"),
        HeadersTooLarge(70_000, 32_768),
        Overloaded("requests waiting", 100_000, "waits_max"),
        AnabranchError(reason="the server failed: see request 1f0a6c3b9d2e4857 in its log"),
        Unavailable("the log", "it is stopping"),
        DeadlineExceeded.of_read("describe orders", 30_000),
    )
)
"""What any operation may answer."""

OF_LOG = (
    ANY
    | UnknownLog("orders")
    | Promoted("orders--what-if", "orders")
    | Squashed("orders--what-if", "on request", "orders")
    | WrongEngine("ticks", "belfast", "read")
)
"""What any operation on a log may answer."""

WITH_BODY = Refusals(
    (
        MalformedBody("it isn't JSON: expected value at line 1 column 1"),
        BodyTooLarge("/v1/logs", 70_000, 65_536),
        BodyTooSlow(30_000),
        UnsupportedMedia("/v1/logs", "Content-Type", "text/plain", "application/json"),
    )
)

ON_CHANGE = (
    WITH_BODY
    | RequestForgotten("this request")
    | RequestReused()
    | OutcomeUnknown.late(
        "append to orders",
        30_000,
        "look at the log before you repeat it. With an Idempotency-Key it can be repeated blindly",
    )
    | StorageFull("the journal")
    | StorageFailed("the journal", "Input/output error")
)
"""What an operation that changes something may answer, beside what any may."""
