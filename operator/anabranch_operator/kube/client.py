"""A small client of the API server: what the operator needs of it, and nothing besides.

Writes are server-side applies, each concern under a field manager of its own; every write asks
first, at the last moment before bytes leave, whether we may still act.
"""

from collections.abc import AsyncIterator, Callable
from contextvars import ContextVar
from typing import Any
from urllib.parse import urlencode

import aiohttp
import msgspec

from anabranch_operator.api.names import (
    FIELD_MANAGER,
    MADE_BY,
    MARK_MANAGER,
    STATUS_MANAGER,
)
from anabranch_operator.kube.access import Access, session
from anabranch_operator.kube.rate_limit import Pace
from anabranch_operator.kube.refusals import ApiError, Away, NotStanding, TooMany, refused
from anabranch_operator.kube.resources import RESOURCES, collection, place
from anabranch_operator.plan.engine.objects import Document, Ref

CONNECTIONS_MAX = 32
REQUEST_S = 15.0
CONNECT_S = 5.0
PAGE = 500
_APPLY = "application/apply-patch+yaml"
"""JSON is YAML, and quicker to read."""
_JSON = "application/json"
_METADATA = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"
_LOG_BYTES_MAX = 1 << 16
"""A line of a pod's log may have any length."""
_TRIES_AGAIN_MS = 1_000
"""After a 429 that doesn't say when."""

_fenced: ContextVar[bool] = ContextVar("fenced")
"""Is the request that this task makes a write, which only a leader may do?"""

OnCall = Callable[[str, str, str], None]
"""Of each request: the verb, the kind, and the answer's status or the error's name."""


class Page(msgspec.Struct, frozen=True):
    """Part of a list."""

    items: list[dict[str, Any]]
    version: str
    more: str


class Client:
    """All requests of one process, with one pace."""

    def __init__(
        self,
        access: Access,
        pace: Pace,
        standing: Callable[[], bool],
        told: OnCall = lambda verb, kind, answer: None,
    ) -> None:
        """`standing`: may we still write?"""
        self._server = access.server
        self._pace = pace
        self._standing = standing
        self._told = told
        self._session = session(access, connections_max=CONNECTIONS_MAX, gate=self._gate)
        self._timeout = aiohttp.ClientTimeout(total=REQUEST_S, sock_connect=CONNECT_S)

    async def close(self) -> None:
        await self._session.close()

    async def apply(
        self,
        ref: Ref,
        manifest: Document,
        manager: str = FIELD_MANAGER,
        subresource: str = "",
        *,
        force: bool = True,
    ) -> Document:
        """Server-side apply; what others have set becomes ours, or without `force` a Conflict."""
        path = place(ref, subresource)
        query = {"fieldManager": manager, "force": "true" if force else "false"}
        return await self._written("PATCH", path, ref, manifest, query)

    async def apply_status(self, ref: Ref, uid: str, status: Document) -> Document:
        manifest = {**_identity(ref, uid), "status": status}
        return await self.apply(ref, manifest, STATUS_MANAGER, "status")

    async def mark(self, ref: Ref, uid: str, made_by: str) -> Document:
        """The label is all that its manager owns from now on: an earlier finalizer of it goes."""
        manifest = _identity(ref, uid)
        if made_by:
            manifest["metadata"]["labels"] = {MADE_BY: made_by}
        return await self.apply(ref, manifest, MARK_MANAGER)

    async def create(self, ref: Ref, manifest: Document) -> Document:
        path = collection(ref.kind, ref.namespace)
        return await self._written("POST", path, ref, manifest, {"fieldManager": FIELD_MANAGER})

    async def replace(self, ref: Ref, manifest: Document) -> Document:
        """If it is still of the version that the manifest names."""
        return await self._written(
            "PUT", place(ref), ref, manifest, {"fieldManager": FIELD_MANAGER}
        )

    async def delete(self, ref: Ref, uid: str, grace_s: int | None = None) -> Document | None:
        """The object as it is now if something holds it, None if it is gone."""
        options: dict[str, Any] = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "preconditions": {"uid": uid},
            "propagationPolicy": "Background",
        }
        if grace_s is not None:
            options["gracePeriodSeconds"] = grace_s
        answer = await self._written("DELETE", place(ref), ref, options, {})
        return answer if answer.get("kind") == ref.kind else None

    async def get(self, ref: Ref) -> Document:
        return msgspec.json.decode(await self._send("GET", place(ref), ref.kind))

    async def find(self, ref: Ref) -> Document | None:
        """The object as etcd has it now, or None. A list with one name says so for sure: of a kind
        that isn't served it is an error, where a `get` would say that there is no such object.
        """
        name = {"fieldSelector": f"metadata.name={ref.name}"}
        path = collection(ref.kind, ref.namespace)
        found = msgspec.json.decode(await self._send("GET", path, ref.kind, query=name))
        kind = {"apiVersion": RESOURCES[ref.kind].api_version, "kind": ref.kind}
        return next(({**each, **kind} for each in found.get("items") or ()), None)

    async def tail(self, ref: Ref, lines: int, container: str = "") -> str:
        """The last lines of a pod's log; which container's must be said where there are several."""
        query = {"tailLines": str(lines), "limitBytes": str(_LOG_BYTES_MAX)}
        query |= {"container": container} if container else {}
        body = await self._send("GET", place(ref, "log"), "Pod", query=query)
        return body.decode(errors="replace")

    async def pages(
        self,
        kind: str,
        namespace: str = "",
        *,
        labels: str = "",
        fields: str = "",
        whole: bool = False,
    ) -> AsyncIterator[Page]:
        """All objects of a kind, but for `whole` only their metadata.

        The first page of what we know already may come from the API server's cache; a consistent
        list would cost etcd.
        """
        more = ""
        while True:
            query = {"limit": str(PAGE), "labelSelector": labels, "fieldSelector": fields}
            query |= {"continue": more} if more else {"resourceVersion": "0"}
            body = await self._send(
                "GET",
                collection(kind, namespace),
                kind,
                query={name: value for name, value in query.items() if value},
                accept=_JSON if whole else _METADATA,
            )
            found = msgspec.json.decode(body)
            meta = found["metadata"]
            more = meta.get("continue", "")
            yield Page(found.get("items") or [], meta.get("resourceVersion", ""), more)
            if not more:
                return

    async def serves(self, kind: str) -> bool:
        """Does the API server know this kind?"""
        try:
            body = await self._send("GET", RESOURCES[kind].root, kind)
        except ApiError as error:
            if isinstance(error, Away | TooMany):
                raise
            return False
        plurals = {each["name"] for each in msgspec.json.decode(body)["resources"]}
        return RESOURCES[kind].plural in plurals

    async def _written(
        self, method: str, path: str, ref: Ref, body: Document, query: dict[str, str]
    ) -> Document:
        await self._pace.turn()
        answer = await self._send(method, path, ref.kind, body=body, query=query, fenced=True)
        return msgspec.json.decode(answer)

    async def _send(
        self,
        method: str,
        path: str,
        kind: str,
        *,
        body: Document | None = None,
        query: dict[str, str] | None = None,
        accept: str = _JSON,
        fenced: bool = False,
    ) -> bytes:
        headers = {"Accept": accept, "Accept-Encoding": "identity"}
        content = None
        if body is not None:
            content = msgspec.json.encode(body)
            headers["Content-Type"] = _APPLY if method == "PATCH" else _JSON
        _fenced.set(fenced)
        where = f"{self._server}{path}" + (f"?{urlencode(query)}" if query else "")
        try:
            async with self._session.request(
                method,
                where,
                data=content,
                headers=headers,
                timeout=self._timeout,
            ) as response:
                answer = await response.read()
        except ApiError as error:
            self._told(method, kind, error.code)
            raise
        except TimeoutError:
            self._told(method, kind, "timeout")
            raise Away(f"no answer to {method} {path} within {REQUEST_S:g} s") from None
        except (aiohttp.ClientError, OSError) as error:
            self._told(method, kind, "away")
            raise Away(f"{method} {path}: {error}") from None
        self._told(method, kind, str(response.status))
        if response.status < 300:
            return answer
        error = refused(response.status, response.headers, answer)
        if isinstance(error, TooMany):
            self._pace.hold(error.retry_after_ms or _TRIES_AGAIN_MS)
        raise error

    def _gate(self) -> NotStanding | None:
        if _fenced.get() and not self._standing():
            return NotStanding("our lease isn't good any more: nothing was sent")
        return None


def _identity(ref: Ref, uid: str) -> dict[str, Any]:
    """Whoever applies with a UID changes this very object, and never makes another."""
    return {
        "apiVersion": RESOURCES[ref.kind].api_version,
        "kind": ref.kind,
        "metadata": {"name": ref.name, "namespace": ref.namespace, "uid": uid},
    }
