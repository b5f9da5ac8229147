"""A question to the nodes of a deployment: to the leader, or to any that knows."""

from anabranch.client.belfast.directory import NodeLine, Whereabouts
from anabranch.client.session.leader_call import LeaderCall
from anabranch.core.belfast.protocol.messages import (
    Directory,
    Elsewhere,
    Join,
    Leave,
    Locate,
    ToClient,
    ToServer,
    Trim,
)
from anabranch.core.errors import (
    AnabranchError,
    NotPrimary,
    Retry,
    ShardElsewhere,
    UnknownShard,
)


class Call(LeaderCall[ToServer, ToClient, Whereabouts]):
    """To the leader of the sequencing group, or to any node."""

    __slots__ = ()

    RETRIED = (Retry, NotPrimary, ShardElsewhere)

    @property
    def _for_anybody(self) -> bool:
        return isinstance(self._message, Locate)

    @property
    def _leader(self) -> str:
        return self._of_session.router.leader

    def _another(self) -> str:
        return self._of_session.router.any()

    def _line_to(self, node: str) -> NodeLine:
        return self._of_session.router.line(node)

    def _changes(self) -> bool:
        return isinstance(self._message, Trim | Leave | Join)

    def _answered(self, answer: ToClient) -> None:
        if isinstance(answer, Elsewhere):
            self._redirect(answer.node)
        else:
            self._finish(answer=answer)

    def _retries(self, error: AnabranchError) -> bool:
        joining = self._of_session.router.joining
        return super()._retries(error) or (joining and isinstance(error, UnknownShard))

    def _learn(self, answer: ToClient) -> None:
        if isinstance(answer, Directory):
            self._of_session.router.learn(answer)
