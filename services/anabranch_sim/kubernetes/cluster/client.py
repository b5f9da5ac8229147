"""The operator's client of the API server, as `kube/client.py` is, on simulated time."""

from collections.abc import Callable
from typing import Any

from anabranch.core.types import MS, Nanoseconds
from anabranch_operator.kube.refusals import NotStanding, TooMany
from anabranch_operator.plan.engine.events import FORBIDDEN, NOT_FOUND, Refusal
from anabranch_operator.plan.engine.objects import Document, Observed, Ref
from anabranch_sim.kubernetes.cluster.apiserver import ApiServer
from anabranch_sim.kubernetes.cluster.objects import copied
from anabranch_sim.kubernetes.cluster.waiting import Promise


class SimClient:
    """Every write asks at the last moment whether it may still be sent."""

    def __init__(
        self, api: ApiServer, standing: Callable[[], bool], sent: Callable[[str, Ref], None]
    ) -> None:
        """`sent`: told of every write that leaves."""
        self._api = api
        self._kube = api.kube
        self._standing = standing
        self._sent = sent
        self._held_until: Nanoseconds = 0

    async def apply(self, ref: Ref, manifest: Document) -> Document:
        return await self._write("apply", ref, lambda: self._made(ref, manifest, anew=False))

    async def create(self, ref: Ref, manifest: Document) -> Document:
        return await self._write("create", ref, lambda: self._made(ref, manifest, anew=True))

    async def apply_status(self, ref: Ref, uid: str, status: Document) -> Document:
        def act() -> Document | Refusal:
            return self._as_it_is(ref, self._kube.apply_status(ref, uid, status))

        return await self._write("status", ref, act)

    async def mark(self, ref: Ref, uid: str, made_by: str) -> Document:
        def act() -> Document | Refusal:
            before = self._kube.documents.get(ref)
            outcome = self._kube.mark(ref, uid, made_by)
            if outcome is None and before is not None:
                return copied({**before, "metadata": {**before["metadata"], "finalizers": []}})
            return self._as_it_is(ref, outcome)

        return await self._write("mark", ref, act)

    async def delete(self, ref: Ref, uid: str, grace_s: int | None = None) -> Document | None:
        del grace_s

        def act() -> Document | Refusal | None:
            outcome = self._kube.delete(ref, uid)
            return None if outcome is None else self._as_it_is(ref, outcome)

        return await self._write("delete", ref, act)

    async def get(self, ref: Ref) -> Document:
        return await self._api.ask(lambda: self._found(ref))

    async def find(self, ref: Ref) -> Document | None:
        found = await self._api.ask(lambda: {"items": copied(self._kube.documents.get(ref))})
        return found["items"]

    async def tail(self, ref: Ref, lines: int, container: str = "") -> str:
        del lines, container
        found = await self._api.ask(lambda: self._found(ref))
        return f"the last words of {found['metadata']['name']}"

    async def _write(
        self, verb: str, ref: Ref, act: Callable[[], Document | Refusal | None]
    ) -> Any:
        world = self._api.world
        while (wait := self._held_until - world.now) > 0:
            rest = Promise[None]()
            world.after(wait, lambda rest=rest: rest.settle(None))
            await rest
        if not self._standing():
            raise NotStanding("our lease isn't good any more: nothing was sent")
        self._sent(verb, ref)
        try:
            return await self._api.ask(act)
        except TooMany as error:
            self._held_until = world.now + error.retry_after_ms * MS
            raise

    def _made(self, ref: Ref, manifest: Document, *, anew: bool) -> Document | Refusal:
        if ref not in self._kube.documents and self._api.is_closing(ref):
            return Refusal(FORBIDDEN, f"namespace {ref.namespace} is being terminated")
        make = self._kube.create if anew else self._kube.apply
        return self._as_it_is(ref, make(ref, manifest))

    def _found(self, ref: Ref) -> Document | Refusal:
        found = self._kube.documents.get(ref)
        return Refusal(NOT_FOUND, f"{ref} isn't there") if found is None else copied(found)

    def _as_it_is(self, ref: Ref, outcome: Observed | Refusal | None) -> Document | Refusal:
        if isinstance(outcome, Refusal):
            return outcome
        return copied(self._kube.documents[ref])
