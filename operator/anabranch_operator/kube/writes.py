"""Plans' writes on the API server, performed; whatever comes of it is an outcome, never a raise."""

import hashlib
from datetime import UTC, datetime
from typing import Any, assert_never

from anabranch_operator.api.names import FIELD_MANAGER, MANAGED_BY
from anabranch_operator.kube.client import Client
from anabranch_operator.kube.refusals import ApiError, Conflict, Invalid, NotFound
from anabranch_operator.kube.resources import RESOURCES
from anabranch_operator.plan.engine.actions import (
    Announce,
    Apply,
    ApplyStatus,
    Confirm,
    Create,
    Delete,
    Mark,
    TailLog,
    Write,
)
from anabranch_operator.plan.engine.events import Outcome, Text
from anabranch_operator.plan.engine.objects import Document, Ref, observe

_NOTE_CHARS_MAX = 1_000
"""The API server takes 1,024 bytes."""


class Writer:
    """`name`: who writes, as people see it in Events."""

    def __init__(self, client: Client, name: str) -> None:
        self._client = client
        self._name = name

    async def perform(self, action: Write) -> Outcome:
        try:
            return await self._perform(action)
        except ApiError as error:
            return error.refusal()

    async def _perform(self, action: Write) -> Outcome:
        match action:
            case Apply(ref=ref):
                if action.anew:
                    await self._is_free(ref)
                return observe(await self._client.apply(ref, action.manifest))
            case Create(ref=ref):
                return observe(await self._client.create(ref, action.manifest))
            case ApplyStatus(ref=ref):
                return observe(await self._client.apply_status(ref, action.uid, action.status))
            case Mark(ref=ref, uid=uid, made_by=made_by):
                return observe(await self._client.mark(ref, uid, made_by))
            case Confirm(ref=ref, uid=uid):
                found = await self._client.find(ref)
                same = found is not None and found["metadata"]["uid"] == uid
                return observe(found) if found is not None and same else None
            case Delete(ref=ref):
                left = await self._client.delete(ref, action.uid, action.grace_s)
                return None if left is None else observe(left)
            case Announce():
                return await self._announce(action)
            case TailLog(ref=ref):
                return await self._tail(ref, action.lines)
            case _:
                assert_never(action)

    async def _is_free(self, ref: Ref) -> None:
        """Server-side apply would make an object of somebody else's ours, and our end its end."""
        try:
            found = observe(await self._client.get(ref))
        except NotFound:
            return
        if found.labels.get(MANAGED_BY) != FIELD_MANAGER:
            reason = "is there already, and isn't the operator's: delete it, or take another name"
            raise Conflict(f"a {ref.kind} {ref.name} {reason}")

    async def _announce(self, event: Announce) -> None:
        """Said again within the hour that Events are kept, it is one Event still."""
        said = f"{event.uid} {event.reason} {event.message}".encode()
        suffix = hashlib.sha256(said).hexdigest()[:16]
        namespace = event.ref.namespace or "default"
        ref = Ref("Event", namespace, f"{event.ref.name}.{suffix}")
        try:
            await self._client.create(ref, self._event(ref, event))
        except Conflict:
            return

    def _event(self, ref: Ref, event: Announce) -> Document:
        now = datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
        about = event.ref
        return {
            "apiVersion": RESOURCES["Event"].api_version,
            "kind": "Event",
            "metadata": {"name": ref.name, "namespace": ref.namespace},
            "eventTime": now,
            "type": "Warning" if event.warning else "Normal",
            "reason": event.reason,
            "note": event.message.encode()[:_NOTE_CHARS_MAX].decode(errors="ignore"),
            "action": "Reconcile",
            "reportingController": FIELD_MANAGER,
            "reportingInstance": self._name,
            "regarding": {
                "apiVersion": RESOURCES[about.kind].api_version,
                "kind": about.kind,
                "namespace": about.namespace,
                "name": about.name,
                "uid": event.uid,
            },
        }

    async def _tail(self, ref: Ref, lines: int) -> Text:
        try:
            return Text(await self._client.tail(ref, lines))
        except Invalid:
            container = _failed(await self._client.get(ref))
            return Text(await self._client.tail(ref, lines, container))


def _failed(pod: Document) -> str:
    """Of several containers the one that has failed, or else the first."""
    statuses: list[dict[str, Any]] = pod.get("status", {}).get("containerStatuses") or []
    for status in statuses:
        ended = status.get("state", {}).get("terminated")
        if ended is not None and ended.get("exitCode"):
            return status["name"]
    return pod["spec"]["containers"][0]["name"]
