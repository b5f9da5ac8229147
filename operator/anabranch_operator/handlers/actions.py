"""Actions, each given to who performs it."""

from collections.abc import Callable
from typing import get_args

from anabranch.core.types import Nanoseconds
from anabranch_operator.kube.certificate_store import Objects
from anabranch_operator.kube.client import Client
from anabranch_operator.kube.refusals import ApiError
from anabranch_operator.kube.writes import Writer
from anabranch_operator.metrics import Metrics
from anabranch_operator.pki.notary import Notary
from anabranch_operator.plan.certificates.facts import (
    Arrange,
    CertificateAction,
    Inspect,
    Issue,
    Publish,
)
from anabranch_operator.plan.certificates.facts import ends as certificate_ends
from anabranch_operator.plan.engine.actions import Action, Ask, JoinShard, LeaveShard, Write
from anabranch_operator.plan.engine.events import Outcome
from anabranch_operator.plan.engine.world import Surroundings
from anabranch_operator.service.bolt_client import Asker
from anabranch_operator.service.log_client import Visitor

_WRITES: tuple[type[Write], ...] = get_args(Write)
_ASKS: tuple[type[Ask], ...] = get_args(Ask)


class Performer:
    """Whatever comes of an action is an outcome."""

    def __init__(
        self,
        client: Client,
        asker: Asker,
        visitor: Visitor,
        surroundings: Surroundings,
        name: str,
        now: Callable[[], Nanoseconds],
        metrics: Metrics,
    ) -> None:
        self._writer = Writer(client, name)
        self._asker = asker
        self._visitor = visitor
        self._wanted = surroundings.certificates
        self._notary = Notary(Objects(client), self._wanted, surroundings.namespace, now)
        self._metrics = metrics

    async def perform(self, action: Action) -> Outcome:
        if isinstance(action, _ASKS):
            return await self._asker.perform(action)
        if isinstance(action, JoinShard | LeaveShard):
            return await self._visitor.move(action)
        if isinstance(action, _WRITES):
            return await self._writer.perform(action)
        assert isinstance(action, Inspect | Arrange | Issue | Publish)
        return await self._certify(action)

    async def _certify(self, action: CertificateAction) -> Outcome:
        try:
            held = await self._notary.perform(action)
        except ApiError as error:
            return error.refusal()
        for secret, end in certificate_ends(self._wanted, held):
            self._metrics.certificates.labels(secret).set(end / 1e9)
        return held
