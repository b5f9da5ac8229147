"""The log service as the operator asks it: by its own client, under the epoch of its election."""

from collections.abc import Callable
from typing import assert_never

from msgspec.structs import replace

from anabranch.client.bolt.link import Link
from anabranch.client.session.endpoint import endpoint
from anabranch.client.session.settings import Settings
from anabranch.core.bolt.protocol import messages
from anabranch.core.bolt.protocol.commands import Description, Done, Promotion
from anabranch.core.bolt.protocol.queries import At, Listing, Pool
from anabranch.core.errors import AnabranchError
from anabranch.core.errors.refused import Refused
from anabranch.core.types import Milliseconds
from anabranch_operator.api.names import OWNERS
from anabranch_operator.plan.engine.actions import (
    Adopt,
    Ask,
    CountOwn,
    CreateRoot,
    DeleteRoot,
    Describe,
    DrainBroker,
    ForgetBroker,
    MakeFork,
    Promote,
    SetAppends,
    SetQuota,
    SetSettings,
    Squash,
    Trim,
    TrimOlder,
)
from anabranch_operator.plan.engine.events import Outcome, Unseen, Viewed

BY = "operator"
ASK_MS: Milliseconds = 10_000
"""Longer than a takeover of the metadata; what takes longer is planned anew."""
LOOK_MS: Milliseconds = 5_000
"""Brokers of a new installation are made after the first look, which finds nobody there."""


class Asker:
    """One connection. What is guarded by an epoch is refused once a later one was heard of."""

    def __init__(self, url: str, name: str, told: Callable[[str, str], None]) -> None:
        """`told`: of each request and its outcome, for the counters."""
        self._where = endpoint(url)
        self._settings = Settings(client=name, token=self._where.token, timeout_ms=ASK_MS)
        self._made: Link | None = None
        self._told = told

    def close(self) -> None:
        if self._made is not None:
            self._made.close()

    def guard(self, scope: str, epoch: int) -> None:
        self._settings = replace(self._settings, guard=(scope, epoch))
        if self._made is not None:
            self._made.session.guard(scope, epoch)

    @property
    def _link(self) -> Link:
        """Made when it is needed: the operator may be the one who makes what the service is known
        by, and its files come to be long after it has begun.
        """
        if self._made is None:
            link = Link(self._where, self._settings)
            link.start()
            self._made = link
        return self._made

    async def perform(self, ask: Ask) -> Outcome:
        what = type(ask).__name__
        try:
            outcome = await self._perform(ask, what)
        except AnabranchError as error:
            self._told(what, error.code)
            return Refused.of(error)
        self._told(what, "done")
        return outcome

    async def look(self) -> Viewed | Unseen:
        """All logs that somebody in a Kubernetes has declared, and all brokers."""
        try:
            logs: list[Description] = []
            after, more = "", True
            while more:
                asked = messages.ListLogs(after=after, owner=OWNERS)
                page = await self._link.ask(asked, Listing, "list logs", LOOK_MS)
                logs += page.logs
                more = page.more and bool(page.logs)
                after = page.logs[-1].name if page.logs else after
            pool = await self._link.ask(messages.ListBrokers(), Pool, "list brokers", LOOK_MS)
        except AnabranchError as error:
            self._told("Look", error.code)
            return Unseen(error.message)
        self._told("Look", "done")
        return Viewed(tuple(logs), tuple(pool.brokers))

    async def _perform(self, ask: Ask, what: str) -> Outcome:
        link = self._link
        match ask:
            case Promote():
                return await link.ask(self._promotion(ask), Promotion, what, ASK_MS)
            case CountOwn(log=log):
                return await self._described(messages.Describe(log), what)
            case Squash(log=log):
                return await self._done(messages.Squash(log, link.once(), BY), what)
            case DeleteRoot() | Trim() | DrainBroker() | ForgetBroker():
                return await self._done(self._plain(ask), what)
            case TrimOlder(log=log, before=before):
                at = await link.ask(messages.PositionAt(log, before), At, what, ASK_MS)
                return await self._done(messages.Trim(log, at.position, link.once()), what)
            case Adopt(log=log, owner=owner):
                if isinstance(log, str):
                    found = await self._described(messages.Describe(log), what)
                    log = found.id
                return await self._described(messages.Adopt(log, owner, link.once()), what)
            case _:
                return await self._described(self._telling(ask), what)

    def _promotion(self, ask: Promote) -> messages.Promote:
        once = self._link.once()
        if ask.expect_own is None:
            return messages.Promote(ask.log, once)
        return messages.PromoteIf(ask.log, once, ask.expect_own)

    def _plain(self, ask: DeleteRoot | Trim | DrainBroker | ForgetBroker) -> messages.Once:
        once = self._link.once()
        match ask:
            case DeleteRoot(log=log, force=force):
                return messages.DeleteLog(log, once, force)
            case Trim(log=log, before=before):
                return messages.Trim(log, before, once)
            case DrainBroker(broker=broker, epoch=epoch):
                return messages.DrainBroker(broker, epoch, once)
            case ForgetBroker(broker=broker, epoch=epoch):
                return messages.ForgetBroker(broker, epoch, once)
            case _:
                assert_never(ask)

    def _telling(
        self, ask: CreateRoot | MakeFork | Describe | SetQuota | SetSettings | SetAppends
    ) -> messages.Control:
        once = self._link.once()
        match ask:
            case CreateRoot(name=name, owner=owner, why=why):
                return messages.CreateLog(
                    name, once, BY, why, owner, ask.engine, ask.settings, ask.front
                )
            case MakeFork():
                return messages.Fork(
                    ask.parent,
                    ask.kind,
                    once,
                    ask.name,
                    past=ask.past,
                    at=ask.at,
                    promotable=ask.promotable,
                    ttl_ms=ask.ttl_ms,
                    on_parent_delete=ask.on_parent_delete,
                    by=BY,
                    why=ask.why,
                    exclusive=ask.exclusive,
                    quota=ask.quota,
                    owner=ask.owner,
                )
            case Describe(log=log):
                return messages.Describe(log)
            case SetQuota(log=log, quota=quota):
                return messages.SetQuota(log, quota, once)
            case SetSettings(log=log, settings=settings):
                return messages.SetSettings(log, settings, once)
            case SetAppends(log=log, front=front):
                return messages.SetAppends(log, front, once)
            case _:
                assert_never(ask)

    async def _done(self, message: messages.Once, what: str) -> Done:
        return await self._link.ask(message, Done, what, ASK_MS)

    async def _described(self, message: messages.Control, what: str) -> Description:
        return await self._link.ask(message, Description, what, ASK_MS)
