"""The lazy front of a Bolt log as the operator meets it: what its controllers decide about
processes that are there or aren't (decisions 62, 67 and 74).

Somebody appends all the time. The log that the front is before is one of the log service: its front
ends as that log says.
"""

from collections.abc import Iterator, Mapping
from typing import ClassVar

from anabranch.core.bolt.protocol.fronts import NO_EPOCH, EndFront
from anabranch.core.errors import Unavailable, UnknownShard
from anabranch.core.errors.refused import Refused
from anabranch.core.sequencing.protocol.messages import LogSurvey, SequencingStatus
from anabranch.core.types import LogId, Position
from anabranch_operator.plan.groups.report import Report, Standing
from anabranch_operator.plan.lazy.report import report
from anabranch_sim.kubernetes.cluster.service import LogService
from anabranch_sim.kubernetes.log_model import Failure, Replica

APPENDED = 10
"""Records of one step."""
_SEALING = "sealing"


class LazyFront:
    """Implements `LogModel`."""

    engine: ClassVar[str] = "lazy"

    def __init__(self, service: LogService | None = None) -> None:
        self.service = service or LogService()
        self.members: tuple[str, ...] = ()
        self.sequencers: dict[str, None] = {}
        self.replicas: dict[str, Replica] = {}
        self.view: tuple[str, ...] = ()
        """Nodes that must hold an append. Each keeps its ring on its disk."""
        self.number = 0
        self.version = 0
        self.changing = ""
        self.tail: Position = 0
        self.stable: Position = 0
        self.held_up = ""
        """Why the log commits nothing."""

    @property
    def leader(self) -> str:
        started = bool(self.view) and not self.changing
        return self.view[0] if started and self.view[0] in self.sequencers else ""

    @property
    def moving(self) -> bool:
        return bool(self.changing) or any(True for _ in self._ending())

    def step(self, sequencers: Mapping[str, None], replicas: Mapping[str, Replica]) -> None:
        assert not replicas, "a lazy front has no shards"
        self.sequencers = dict(sequencers)
        if not self.sequencers or self.held_up:
            return
        self._change_view()
        if self.leader and all(each in self.sequencers for each in self.view):
            self.tail += APPENDED
            self.stable = self.tail
            self._end()

    def report(self) -> Report | Refused:
        if not self.sequencers:
            return Refused.of(Unavailable("the log", "no sequencer answers"))
        return report(self.survey(), self.status() if self.leader else None)

    def leave(self, shard: str) -> Refused | None:
        return Refused.of(UnknownShard(shard))

    def join(self, shard: str) -> Refused | None:
        return Refused.of(UnknownShard(shard))

    def trim(self) -> None:
        """The log's, not the front's."""

    def standing(self, shard: str) -> Standing | None:
        assert shard, "a shard has a name"
        return None

    def counts_on(self, shard: str) -> bool:
        return self.standing(shard) is not None

    def holds(self, shard: str) -> bool:
        return self.counts_on(shard)

    def serves(self, node: str) -> bool:
        return self.counts_on(node)

    def orders(self, node: str) -> bool:
        return node in self.view and not self.changing

    def failures(self) -> Iterator[Failure]:
        yield from ()

    def _change_view(self) -> None:
        """It takes a step from the seal to the start."""
        there = tuple(each for each in self.members if each in self.sequencers)
        if self.changing:
            self.changing = ""
            if not self.view or any(each in there for each in self.view):
                self.view, self.number = there, self.number + 1
                self.version += 1
        elif (there == self.members) if not self.view else (there != self.view):
            self.changing = _SEALING

    def takes_appends_of(self, log: int) -> bool:
        """May sequencers hold what this log has yet to commit?"""
        found = self.service.state.replica.forest.logs.get(LogId(log))
        return found is not None and found.front is not None and not found.front.ended

    def _end(self) -> None:
        """Of fronts that are to end: their rings are empty."""
        for log in list(self._ending()):
            self.service.command(EndFront(log, NO_EPOCH, 0))

    def _ending(self) -> Iterator[LogId]:
        for log in self.service.state.replica.forest.fronts.values():
            if log.front is not None and log.front.configuration.ending:
                yield log.id

    def survey(self) -> LogSurvey:
        controller = min(self.sequencers)
        return LogSurvey(
            node=controller,
            version=self.version,
            term=1,
            view=self.number,
            leader=self.view[0] if self.view else "",
            members=tuple((each, 1) for each in self.view),
            sequencers=self.members,
            mode="",
            durability="fsync",
            shards=(),
            lost_views=(),
            controller=controller,
            age_ms=50,
            obstacle="",
            changing=self.changing,
            silent=tuple(each for each in self.members if each not in self.sequencers),
            leaving=(),
            taking_over=(),
        )

    def status(self) -> SequencingStatus:
        return SequencingStatus(
            version=self.version,
            view=self.number,
            leader=self.leader,
            members=self.view,
            mode="",
            durability="fsync",
            stable=self.stable,
            tail=self.tail,
            trimmed=0,
            backlog_records=self.tail - self.stable,
            backlog_bytes=0,
            ring_bytes_max=0,
            shards=(),
            ring_lasts_ms=90_500,
            held_up=self.held_up,
        )
