"""A question to the nodes of a deployment: to the leader, or to any that knows."""

from anabranch.client.belfast.directory import NodeLine, Whereabouts
from anabranch.client.session import call
from anabranch.core.belfast.protocol.messages import (
    Directory,
    Elsewhere,
    Locate,
    ToClient,
    ToServer,
)
from anabranch.core.errors import AnabranchError, NotPrimary, Retry, ShardElsewhere, Unavailable


class Call(call.Call[ToServer, ToClient, Whereabouts]):
    """Each try may be at another node; one that doesn't take the connection isn't waited for."""

    __slots__ = ()

    def lost(self, *, sent: bool) -> None:
        super().lost(sent=sent)
        self._doubts += sent
        commons = self._of_session
        refusal = commons.refusals.get(self._of_line.number)
        if refusal is not None and not commons.let_in:
            self._finish(error=refusal)
        else:
            self._retry()

    def _ask(self) -> None:
        """Every other try is at any node: the leader that is known may be gone."""
        router = self._of_session.router
        known = router.leader
        anybody = isinstance(self._message, Locate) or not known or self._tries % 2
        self._ask_at(router.line(router.any() if anybody else known))

    def _ask_at(self, line: NodeLine) -> None:
        self.line = line
        self._request = line.ask(self, self._message)
        if not line.up or isinstance(self._message, Locate):
            commons = self._of_session
            self._again = commons.alarms.after(commons.settings.directory_ms, self._hedge)

    def _hedge(self) -> None:
        """Another node may know as well, or take the connection."""
        line = self._of_line
        if self._request and (not line.up or isinstance(self._message, Locate)):
            line.cancel(self._request)
            self._request = 0
            self._retry()

    def _answered(self, answer: ToClient) -> None:
        if isinstance(answer, Elsewhere):
            self._redirect(answer.node)
        else:
            self._finish(answer=answer)

    def _redirect(self, node: str) -> None:
        """Follow at once, but not for ever: two nodes that name each other are out of date."""
        if node and node != self._of_line.address and not self._tries % 4:
            self._tries += 1
            self._ask_at(self._of_session.router.line(node))
        else:
            self._retry()

    def _refused(self, error: AnabranchError) -> None:
        self._refusal = error
        if isinstance(error, Retry | NotPrimary | ShardElsewhere):
            self._of_session.retried = error
            self._retry()
        else:
            self._finish(error=error)

    def _retry(self) -> None:
        self._hush()
        self._tries += 1
        commons = self._of_session
        self._again = commons.alarms.after(commons.pause(self._tries), self._ask)

    @property
    def _in_doubt(self) -> bool:
        asked = self._request != 0 and self._of_line.up
        return asked or super()._in_doubt

    def _in_vain(self) -> AnabranchError:
        commons = self._of_session
        return self._refusal or commons.rejection or Unavailable(self._what, commons.trouble)

    def _learn(self, answer: ToClient) -> None:
        if isinstance(answer, Directory):
            self._of_session.router.learn(answer)
