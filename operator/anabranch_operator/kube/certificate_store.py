"""The way to the API server of whoever makes certificates."""

from anabranch_operator.kube.client import Client
from anabranch_operator.kube.refusals import Conflict, NotFound
from anabranch_operator.plan.engine.objects import Document, Ref


class Objects:
    def __init__(self, client: Client) -> None:
        self._client = client

    async def find(self, ref: Ref) -> Document | None:
        try:
            return await self._client.get(ref)
        except NotFound:
            return None

    async def apply(self, ref: Ref, manifest: Document) -> Document | None:
        try:
            return await self._client.apply(ref, manifest)
        except (Conflict, NotFound):
            return None
