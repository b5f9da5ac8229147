"""Evictions of pods that serve: put off with 429 until the machine says that the pod may go.

A drain asks again every few seconds, so nothing is kept waiting here. What isn't ours, and what
can't be understood, may go at once; and when nobody answers here, the API server lets it go.
"""

from collections.abc import Callable
from typing import Any

import msgspec
from aiohttp import web

from anabranch.core.types import MS, Nanoseconds
from anabranch_operator.api import names
from anabranch_operator.plan.events import Evicting
from anabranch_operator.plan.evictions import may_go
from anabranch_operator.plan.objects import Ref
from anabranch_operator.plan.reconciler import Operator

_HELD = (names.BROKER, names.METADATA, names.SEQUENCER, names.SHARD)


class _Request(msgspec.Struct, frozen=True, rename="camel"):
    uid: str
    name: str = ""
    namespace: str = ""
    dry_run: bool = False


class _Review(msgspec.Struct, frozen=True):
    request: _Request


class Evictions:
    """Asks the machine each time anew: whether a pod can be spared may change."""

    def __init__(
        self, machine: Operator, give: Callable[[Evicting], None], now: Callable[[], Nanoseconds]
    ) -> None:
        self._machine = machine
        self._give = give
        self._now = now
        self._allowed: set[str] = set()
        self._since: dict[str, Nanoseconds] = {}
        """When those were first asked for that only another operator can decide about."""

    def allow(self, uid: str) -> None:
        self._allowed.add(uid)

    def forget(self, uid: str) -> None:
        self._allowed.discard(uid)
        self._since.pop(uid, None)

    async def serve(self, request: web.Request) -> web.Response:
        try:
            review = msgspec.json.decode(await request.read(), type=_Review)
        except msgspec.MsgspecError as error:
            return web.Response(status=400, text=str(error))
        why = self._objection(review.request)
        answer: dict[str, Any] = {"uid": review.request.uid, "allowed": why is None}
        if why is not None:
            answer["status"] = {"code": 429, "reason": "TooManyRequests", "message": why}
        told = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": answer}
        return web.Response(body=msgspec.json.encode(told), content_type="application/json")

    def _objection(self, request: _Request) -> str | None:
        """Why it may not go yet."""
        pod = self._machine.world.objects.get(Ref("Pod", request.namespace, request.name))
        if pod is None or pod.deleting or pod.labels.get(names.ROLE) not in _HELD:
            return None
        if not self._machine.leads:
            return self._put_off(pod.uid)
        if self._may_go(pod.uid, told=not request.dry_run):
            return None
        return f"{request.name} hands over what it serves first: ask again"

    def _may_go(self, uid: str, *, told: bool) -> bool:
        """Nothing is handed over for somebody who only wants to know."""
        if not told:
            return may_go(self._machine.world, uid, self._now())
        self._allowed.discard(uid)
        self._give(Evicting(uid))
        return uid in self._allowed

    def _put_off(self, uid: str) -> str | None:
        """Whoever asks again may ask the one that leads; but not for ever."""
        now = self._now()
        patience = self._machine.world.surroundings.eviction_ms * MS
        if now - self._since.setdefault(uid, now) >= patience:
            return None
        return "the operator that was asked doesn't lead: ask again"
