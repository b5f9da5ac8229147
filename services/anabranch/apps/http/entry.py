"""What every request passes before anything looks at what it asks: bounds, origin, token, body."""

import asyncio
import ipaddress
import re
import secrets
from time import perf_counter

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from anabranch.apps.http import problems
from anabranch.apps.http.context import Front
from anabranch.apps.http.refusals import (
    BodyTooLarge,
    BodyTooSlow,
    ClientGone,
    ForeignOrigin,
    HeadersTooLarge,
    UnsupportedMedia,
)
from anabranch.core.budget import STRANGERS
from anabranch.core.errors import AnabranchError, Overloaded
from anabranch.shell.telemetry.http_meter import NO_ROUTE

JSON, NDJSON, BYTES = "application/json", "application/x-ndjson", "application/octet-stream"
RECORDS = "/records"
"""What paths end in that take records, and so larger bodies and more media types."""
LISTS = ("/signatures", "/complete")
"""What paths end in that take lists, and so larger bodies."""

SHOWN = "shown"
"""Where a request's scope keeps what it was let in by."""
WHO = "who"
"""And whose part of the process's budgets it takes."""
_PART_BYTES = 64 * 1024
"""What is handed to the server at once, which waits between two parts for a client that is slow."""

OPEN = frozenset({"/healthz", "/readyz"})
"""A supervisor that asks whether the server lives needn't be trusted with more."""

_NO_ANSWER = ClientGone.status

_REQUEST_ID = re.compile(r"[!-~]{1,128}")


class Door:
    """ASGI around ASGI. What it refuses is a problem document too."""

    def __init__(self, app: ASGIApp, front: Front) -> None:
        self.front = front
        self._app = app
        self._meter = front.meter

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        given = headers.get("x-request-id", "")
        request_id = given if _REQUEST_ID.fullmatch(given) else secrets.token_hex(8)
        scope.setdefault("state", {})[problems.REQUEST_ID] = request_id

        status, seconds, began = _NO_ANSWER, 0.0, perf_counter()

        async def send_marked(message: Message) -> None:
            nonlocal status, seconds
            if message["type"] == "http.response.start":
                status, seconds = message["status"], perf_counter() - began
                marked = MutableHeaders(scope=message)
                marked["X-Request-Id"] = request_id
                marked.setdefault("Cache-Control", "no-store")
                await send(message)
            else:
                await self._send(scope["state"].get(WHO, STRANGERS), message, send)

        meter = self._meter
        meter.open += 1
        try:
            await self._check(scope, headers)
            await self._pass(scope, headers, receive, send_marked)
        except AnabranchError as error:
            await problems.answer(error, request_id)(scope, receive, send_marked)
        finally:
            meter.open -= 1
            route = getattr(scope.get("route"), "path", NO_ROUTE)
            meter.count(scope["method"], route, status, seconds)

    async def _send(self, who: str, message: Message, send: Send) -> None:
        """What isn't fetched yet counts among the replies of the process."""
        body: bytes = message.get("body", b"")
        budgets = self.front.budgets
        budgets.replies.hold(who, len(body))
        try:
            for at in range(0, len(body) - _PART_BYTES, _PART_BYTES):
                part = body[at : at + _PART_BYTES]
                await send({"type": message["type"], "body": part, "more_body": True})
            done = max(0, len(body) - 1) // _PART_BYTES * _PART_BYTES
            await send({**message, "body": body[done:]})
        finally:
            budgets.give(budgets.replies, who, len(body))

    async def _check(self, scope: Scope, headers: Headers) -> None:
        front = self.front
        size = len(scope["raw_path"]) + len(scope["query_string"])
        size += sum(len(name) + len(value) for name, value in scope["headers"])
        if size > front.settings.headers_bytes_max:
            raise HeadersTooLarge(size, front.settings.headers_bytes_max)
        if self._meter.open > front.limits.connections_max:
            limit = front.limits.connections_max
            raise Overloaded("open HTTP requests", limit, "connections_max")
        if scope["path"] in OPEN:
            return
        authority = front.authority
        if authority.open:
            _check_origin(headers)
            self._count(scope, None)
            return
        token = _bearer(headers)
        if not authority.known(token):
            address, _ = scope.get("client") or ("", 0)
            await authority.admit(token, address)
        scope["state"][SHOWN] = token
        self._count(scope, token)

    def _count(self, scope: Scope, token: str | None) -> None:
        front = self.front
        who = scope["state"][WHO] = front.authority.principal(token)
        if front.budgets.replies.room(who) <= 0:
            limit = front.budgets.replies.limit
            raise Overloaded("bytes of replies not fetched", limit, "reply_bytes_max")

    async def _pass(self, scope: Scope, headers: Headers, receive: Receive, send: Send) -> None:
        """Hand the request on once its body is here: whole, or not at all."""
        if headers.get("content-length", "0") == "0" and "transfer-encoding" not in headers:
            await self._app(scope, receive, send)
            return
        body = bytearray()
        try:
            await self._take(body, scope, headers, receive)
            await self._app(scope, _replay(bytes(body), receive), send)
        finally:
            self._meter.held_bytes -= len(body)
            budgets = self.front.budgets
            who: str = scope["state"].get(WHO, STRANGERS)
            budgets.give(budgets.requests, who, len(body))

    async def _take(
        self, body: bytearray, scope: Scope, headers: Headers, receive: Receive
    ) -> None:
        path: str = scope["path"]
        who: str = scope["state"].get(WHO, STRANGERS)
        limits, settings = self.front.limits, self.front.settings
        _check_media(path, headers)
        # JSON and base64 make records larger; what they hold is measured again as a batch.
        if path.endswith(RECORDS):
            limit = 2 * limits.batch_bytes_max
        else:
            many = path.endswith(LISTS)
            limit = settings.lists_bytes_max if many else settings.control_bytes_max
        declared = headers.get("content-length", "0")
        if int(declared) > limit:
            raise BodyTooLarge(path, int(declared), limit)
        try:
            async with asyncio.timeout(settings.body_ms / 1_000):
                more = True
                while more:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise ClientGone
                    more = message.get("more_body", False)
                    self._hold(body, message.get("body", b""), who)
                    if len(body) > limit:
                        raise BodyTooLarge(path, len(body), limit)
        except TimeoutError:
            raise BodyTooSlow(settings.body_ms) from None

    def _hold(self, body: bytearray, part: bytes, who: str) -> None:
        requests = self.front.budgets.requests
        limit = self.front.limits.queue_bytes_max
        if self._meter.held_bytes + len(part) > limit:
            raise Overloaded("bytes of HTTP bodies in hand", limit, "queue_bytes_max")
        if not requests.take(who, len(part)):
            raise Overloaded("bytes of requests in hand", requests.limit, "request_bytes_max")
        body += part
        self._meter.held_bytes += len(part)


def _replay(body: bytes, receive: Receive) -> Receive:
    """The body that was taken, then whatever comes after it: that the client has gone."""
    taken = False

    async def again() -> Message:
        nonlocal taken
        if taken:
            return await receive()
        taken = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again


def _bearer(headers: Headers) -> str:
    scheme, _, token = headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer":
        return ""
    return token.strip().encode("latin-1").decode("utf-8", "replace")


def _check_origin(headers: Headers) -> None:
    """Without a token, reaching the address is the permission, and a browser lends it to any page
    that asks, under a name that the page's owner may point here.
    """
    host = headers.get("host", "")
    if host and not _is_address(host):
        raise ForeignOrigin("Host", host)
    origin = headers.get("origin")
    if origin is not None and origin.partition("://")[2] != host:
        raise ForeignOrigin("Origin", origin)


def _is_address(host: str) -> bool:
    name = re.sub(r":\d*\Z", "", host)
    if name.lower() == "localhost":
        return True
    try:
        ipaddress.ip_address(name.strip("[]"))
    except ValueError:
        return False
    return True


_CHARSET = re.compile(r";\s*charset\s*=\s*\"?([^\s\";]*)", re.IGNORECASE)
_UTF8 = ("utf-8", "utf8", "us-ascii")
"""Names of what JSON is written in, and of a part of it."""


def _check_media(path: str, headers: Headers) -> None:
    taken = (JSON, NDJSON, BYTES) if path.endswith(RECORDS) else (JSON,)
    given = headers.get("content-type", "")
    media = given.partition(";")[0].strip().lower()
    if media not in taken:
        wanted = " or ".join(taken)
        raise UnsupportedMedia(path, "Content-Type", given, f"Content-Type: {wanted}")
    charset = _CHARSET.search(given)
    if media != BYTES and charset is not None and charset[1].lower() not in _UTF8:
        raise UnsupportedMedia(path, "Content-Type", given, f"Content-Type: {media}, in UTF-8")
    encoding = headers.get("content-encoding", "identity")
    if encoding.lower() != "identity":
        raise UnsupportedMedia(path, "Content-Encoding", encoding, "it as it is")
