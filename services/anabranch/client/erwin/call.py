"""Questions to the nodes of an Erwin log: to the leader, to a shard, or to any that knows."""

from anabranch.client.erwin.dialect import FromNode, NodeLine, ToNode
from anabranch.client.erwin.directory import Whereabouts
from anabranch.client.session.leader_call import LeaderCall
from anabranch.core.errors import NotPrimary, Retry, ShardElsewhere, StaleView
from anabranch.core.erwin.protocol import messages as shard
from anabranch.core.sequencing.protocol import messages as sequencing
from anabranch.core.sequencing.protocol.messages import (
    Directory,
    Locate,
    SetShardOpen,
    Survey,
    Trim,
)
from anabranch.core.types import Milliseconds

_RETRIED = (Retry, NotPrimary, ShardElsewhere, StaleView)


class _NodeCall(LeaderCall[ToNode, FromNode, Whereabouts]):
    __slots__ = ()

    RETRIED = _RETRIED

    def _answered(self, answer: FromNode) -> None:
        if isinstance(answer, sequencing.Elsewhere | shard.Elsewhere):
            self._redirect(answer.node)
        else:
            self._finish(answer=answer)

    def _learn(self, answer: FromNode) -> None:
        if isinstance(answer, Directory):
            self._of_session.router.learn(answer)

    def _changes(self) -> bool:
        return isinstance(self._message, Trim | SetShardOpen)

    def _retry(self) -> None:
        self._of_session.router.ask()
        super()._retry()


class Call(_NodeCall):
    """To the leader of the view, or to any sequencing replica."""

    __slots__ = ()

    @property
    def _for_anybody(self) -> bool:
        return isinstance(self._message, Locate | Survey)

    @property
    def _leader(self) -> str:
        return self._of_session.router.leader

    def _another(self) -> str:
        return self._of_session.router.any_sequencer()

    def _line_to(self, node: str) -> NodeLine:
        return self._of_session.router.sequencer(node)


class ShardCall(_NodeCall):
    """To the primary of a shard."""

    __slots__ = ("_shard",)

    def __init__(
        self,
        message: shard.Read,
        what: str,
        timeout_ms: Milliseconds,
        wait_ms: Milliseconds = 0,
    ) -> None:
        super().__init__(message, what, timeout_ms, wait_ms)
        self._shard = message.shard

    @property
    def _for_anybody(self) -> bool:
        return False

    @property
    def _leader(self) -> str:
        known = self._of_session.router.shard(self._shard)
        return "" if known is None else known.primary

    def _another(self) -> str:
        return self._of_session.router.any_of(self._shard)

    def _line_to(self, node: str) -> NodeLine:
        return self._of_session.router.shard_line(node)

    def _ask(self) -> None:
        known = self._of_session.router.shard(self._shard)
        if known is None or not known.replicas:
            # Nobody has told yet where it is, or it is gone.
            self._retry()
        else:
            super()._ask()
