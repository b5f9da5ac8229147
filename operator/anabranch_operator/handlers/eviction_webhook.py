"""Evictions of pods that serve: put off with 429 until the machine says that the pod may go.

A drain asks again every few seconds, so nothing is kept waiting here. What isn't ours, and what
can't be understood, may go at once; and when nobody answers here, the API server lets it go.

API servers seldom show webhooks who they are, so a call may come from any pod that reaches this
port. It is believed if its certificate was checked, or if the operator itself sees that the pod's
node is being emptied. Another call is answered and changes nothing: nothing is handed over for it.
"""

from collections.abc import Callable
from typing import Any

import msgspec
from aiohttp import web

from anabranch.core.types import MS, Nanoseconds
from anabranch_operator.api import names
from anabranch_operator.plan.engine.events import Evicting
from anabranch_operator.plan.engine.objects import Observed, Ref
from anabranch_operator.plan.engine.operator import Operator
from anabranch_operator.plan.metadata.evictions import may_go
from anabranch_operator.plan.metadata.nodes import is_leaving

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
        self,
        machine: Operator,
        give: Callable[[Evicting], None],
        now: Callable[[], Nanoseconds],
        *,
        authenticated: bool,
    ) -> None:
        """`authenticated`: only callers with a certificate of our authority for them get here."""
        self._machine = machine
        self._give = give
        self._now = now
        self._authenticated = authenticated
        self._allowed: set[str] = set()
        self._since: dict[str, Nanoseconds] = {}
        """When pods were first asked for that can't be handed over for this caller, or by us."""

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
        reply = web.Response(body=msgspec.json.encode(told), content_type="application/json")
        if not self._machine.leads:
            # The API server keeps its connections, and would ask this very operator again and
            # again. Over a new one the Service may take it to the operator that leads.
            reply.force_close()
        return reply

    def _objection(self, request: _Request) -> str | None:
        """Why it may not go yet."""
        pod = self._machine.world.objects.get(Ref("Pod", request.namespace, request.name))
        if pod is None or pod.deleting or pod.labels.get(names.ROLE) not in _HELD:
            return None
        if not self._machine.leads:
            return self._put_off(pod.uid, "the operator that was asked doesn't lead: ask again")
        if not (self._authenticated or is_leaving(self._machine.world, pod)):
            return self._unbelieved(pod)
        if self._may_go(pod.uid, told=not request.dry_run):
            return None
        return f"{request.name} hands over what it serves first: ask again"

    def _unbelieved(self, pod: Observed) -> str | None:
        """The answer to somebody whom nothing that we see bears out."""
        if may_go(self._machine.world, pod.uid, self._now()):
            return None
        message = (
            f"{pod.ref.name} serves, and the operator doesn't see that its node is being drained: "
            "cordon the node and ask again, and it hands over first"
        )
        return self._put_off(pod.uid, message)

    def _may_go(self, uid: str, *, told: bool) -> bool:
        """Nothing is handed over for somebody who only wants to know."""
        if not told:
            return may_go(self._machine.world, uid, self._now())
        self._allowed.discard(uid)
        self._give(Evicting(uid))
        return uid in self._allowed

    def _put_off(self, uid: str, message: str) -> str | None:
        """A pod isn't held for ever: whatever the reason, it may go after the deadline."""
        now = self._now()
        patience = self._machine.world.surroundings.eviction_ms * MS
        if now - self._since.setdefault(uid, now) >= patience:
            return None
        return message
