"""Logs of SequencerSets as the operator asks them: by their own clients, a session for each."""

from collections.abc import Callable
from typing import Any, TypeVar
from urllib.parse import quote, urlencode

from anabranch.client.belfast.link import Link as BelfastLink
from anabranch.client.erwin.link import Link as ErwinLink
from anabranch.client.session.endpoint import belfast_endpoint, erwin_endpoint
from anabranch.client.session.settings import Settings
from anabranch.core.belfast.protocol import messages as belfast
from anabranch.core.errors import AnabranchError
from anabranch.core.errors.refused import Refused
from anabranch.core.sequencing.protocol import messages as erwin
from anabranch_operator.api.common import GroupEngineName
from anabranch_operator.plan.belfast.report import report as belfast_report
from anabranch_operator.plan.engine.actions import JoinShard, LeaveShard
from anabranch_operator.plan.engine.events import Outcome, Visit, Visited
from anabranch_operator.plan.erwin.report import report as erwin_report
from anabranch_operator.plan.groups.report import Report
from anabranch_operator.plan.lazy.report import report as lazy_report

VISIT_S = 5.0
"""Longer than an election of the group's."""
INSPECT_S = 1.0
"""Sequencers with views say who leads: if that one doesn't answer, all else is told without."""
MOVE_S = 10.0

Link = BelfastLink | ErwinLink
A = TypeVar("A")


class Visitor:
    """A session that fails is begun anew: whom to trust, and as who, may have changed."""

    def __init__(
        self, name: str, token_file: str, ca: str, told: Callable[[str, str], None]
    ) -> None:
        """`told`: of each request and its outcome, for the counters."""
        self._settings = Settings(client=name)
        self._token_file, self._ca = token_file, ca
        self._told = told
        self._links: dict[str, Link] = {}

    def close(self) -> None:
        for link in self._links.values():
            link.close()
        self._links.clear()

    async def visit(self, visit: Visit) -> Visited:
        try:
            found = await self._report(visit.url, visit.engine)
        except AnabranchError as error:
            return Visited(visit.ref, visit.uid, why=error.message)
        return Visited(visit.ref, visit.uid, found)

    async def move(self, action: JoinShard | LeaveShard) -> Outcome:
        shard, joins = action.shard, isinstance(action, JoinShard)
        what = type(action).__name__
        try:
            if _is_erwin(action.url):
                wish = erwin.SetShardOpen(shard, joins)
                await self._ask(action.url, wish, erwin.Done, what, MOVE_S)
            else:
                message = belfast.Join(shard) if joins else belfast.Leave(shard)
                await self._ask(action.url, message, belfast.Done, what, MOVE_S)
        except AnabranchError as error:
            # Why it was refused until time ran out says more than that time ran out.
            why = error.__cause__
            return Refused.of(why if isinstance(why, AnabranchError) else error)
        return None

    async def _report(self, url: str, engine: GroupEngineName) -> Report:
        if not _is_erwin(url):
            status = await self._ask(url, belfast.Inspect(), belfast.Status, "Visit", VISIT_S)
            return belfast_report(status)
        report = lazy_report if engine is GroupEngineName.LAZY else erwin_report
        survey = await self._ask(url, erwin.Survey(), erwin.LogSurvey, "Visit", VISIT_S)
        if survey.changing or not survey.view:
            return report(survey, None)
        try:
            link: Any = self._link(url)
            status = await link.ask(erwin.Inspect(), erwin.SequencingStatus, "Inspect", INSPECT_S)
        except AnabranchError as error:
            self._told("Inspect", error.code)
            status = None
        return report(survey, status)

    async def _ask(self, url: str, message: Any, answer: type[A], what: str, timeout_s: float) -> A:
        try:
            found = await self._link(url).ask(message, answer, what, timeout_s)
        except AnabranchError as error:
            self._told(what, error.code)
            self._forget(url)
            raise
        self._told(what, "done")
        return found

    def _link(self, url: str) -> Link:
        link = self._links.get(url)
        if link is None:
            link = self._links[url] = self._made(url + self._query(url))
            link.start()
        return link

    def _made(self, url: str) -> Link:
        if _is_erwin(url):
            return ErwinLink(erwin_endpoint(url), self._settings)
        link = BelfastLink(belfast_endpoint(url), self._settings)
        # A shard that nobody knows yet is asked for again by its plan, not waited for here.
        link.session.whereabouts.expected = 0
        return link

    def _query(self, url: str) -> str:
        given = {"token_file": self._token_file}
        if url.partition(":")[0].endswith("s"):
            given["ca"] = self._ca
        told = {name: each for name, each in given.items() if each}
        return f"?{urlencode(told, quote_via=quote)}" if told else ""

    def _forget(self, url: str) -> None:
        link = self._links.pop(url, None)
        if link is not None:
            link.close()


def _is_erwin(url: str) -> bool:
    return url.startswith("erwin")
