"""An Erwin log as the operator meets it: what its controllers decide about processes that are there
or aren't (decisions 57, 58 and 60).

Views change, shards get other primaries, are taken in, closed and removed. Somebody appends all the
time, so that every position is on some shard until it is trimmed.
"""

from collections.abc import Iterator, Mapping
from typing import ClassVar

from msgspec.structs import replace

from anabranch.core.errors import DeadlineExceeded, LastShard, Unavailable, UnknownShard
from anabranch.core.errors.refused import Refused
from anabranch.core.sequencing.protocol.messages import LogSurvey, SequencingStatus, ShardPlace
from anabranch.core.types import Position
from anabranch_operator.plan.erwin.report import report
from anabranch_operator.plan.groups.report import Report, Standing
from anabranch_sim.kubernetes.log_model import Failure, Replica

APPENDED = 10
"""Records of one step."""
_SEALING = "sealing"


class ErwinLog:
    """Implements `LogModel`. Configurations are in etcd: any sequencer's controller may lead."""

    engine: ClassVar[str] = "erwin"

    def __init__(self) -> None:
        self.members: tuple[str, ...] = ()
        self.sequencers: dict[str, None] = {}
        self.replicas: dict[str, Replica] = {}
        self.view: tuple[str, ...] = ()
        """Nodes that must hold an append. Each keeps its ring on its disk."""
        self.number = 0
        self.version = 0
        self.changing = ""
        self.tail: Position = 0
        self.trimmed: Position = 0
        self._shards: dict[str, ShardPlace] = {}
        self._disks: dict[str, int] = {}
        """Of the nodes of each shard's epoch."""
        self._closed: dict[str, Position] = {}
        """Where the log ended when a shard was closed."""

    @property
    def leader(self) -> str:
        started = bool(self.view) and not self.changing
        return self.view[0] if started and self.view[0] in self.sequencers else ""

    @property
    def moving(self) -> bool:
        return bool(self.changing or self._closed) or any(
            not each.epoch for each in self._shards.values()
        )

    def step(self, sequencers: Mapping[str, None], replicas: Mapping[str, Replica]) -> None:
        self.sequencers, self.replicas = dict(sequencers), dict(replicas)
        if not self.sequencers:
            return
        self._admit()
        for place in list(self._shards.values()):
            if not place.removed:
                self._arrange(place)
        self._change_view()
        if self.leader and all(map(self._is_led, self._open())):
            self.tail += APPENDED
        for name, end in list(self._closed.items()):
            if self.trimmed >= end and self._is_led(self._shards[name]):
                del self._closed[name]
                self._put(replace(self._shards[name], removed=True))

    def report(self) -> Report | Refused:
        if not self.sequencers:
            return Refused.of(Unavailable("the log", "no sequencer answers"))
        return report(self.survey(), self.status() if self.leader else None)

    def leave(self, shard: str) -> Refused | None:
        place = self._shards.get(shard)
        if place is None:
            return Refused.of(UnknownShard(shard))
        if not place.open or place.removed:
            return None
        if not self.sequencers:
            return Refused.of(DeadlineExceeded("close a shard", 10_000))
        if len(self._open()) == 1:
            return Refused.of(LastShard(shard))
        self._closed[shard] = self.tail
        self._put(replace(place, open=False))
        return None

    def join(self, shard: str) -> Refused | None:
        """One that was removed is added again, empty, when all of its replicas are there."""
        place = self._shards.get(shard)
        if place is None:
            return Refused.of(UnknownShard(shard))
        if not self.sequencers or (place.removed and not self._is_there(place.nodes)):
            return Refused.of(DeadlineExceeded("open a shard", 10_000))
        self._closed.pop(shard, None)
        if place.removed:
            self._begin(replace(place, open=True, removed=False), place.nodes)
        elif not place.open:
            self._put(replace(place, open=True))
        return None

    def trim(self) -> None:
        self.trimmed = self.tail

    def standing(self, shard: str) -> Standing | None:
        found = self.report()
        shards = () if isinstance(found, Refused) else found.shards
        return next((each.standing for each in shards if each.name == shard), None)

    def counts_on(self, shard: str) -> bool:
        """Every shard holds every push, a closed one too."""
        place = self._shards.get(shard)
        return place is not None and place.epoch > 0 and not place.removed

    def holds(self, shard: str) -> bool:
        return self.counts_on(shard)

    def serves(self, node: str) -> bool:
        return any(node in self._kept(each) for each in self._shards.values() if not each.removed)

    def orders(self, node: str) -> bool:
        return node in self.view and not self.changing

    def failures(self) -> Iterator[Failure]:
        """A shard waits for its replicas: it never fails."""
        yield from ()

    def _admit(self) -> None:
        for each in list(self.replicas.values()):
            if each.shard not in self._shards and self._is_there(each.replicas):
                self._put(
                    ShardPlace(
                        number=len(self._shards),
                        name=each.shard,
                        nodes=each.replicas,
                        epoch=0,
                        primary="",
                        replicas=(),
                        open=True,
                        removed=False,
                    )
                )

    def _arrange(self, place: ShardPlace) -> None:
        """The first epoch; another primary; a backup that is lost, or back."""
        if not place.epoch:
            if self._is_there(place.nodes):
                self._begin(place, place.nodes)
            return
        kept = self._kept(place)
        if not kept:
            return
        back = [each for each in place.nodes if each in self.replicas and each not in kept]
        if place.primary not in kept:
            self._begin(place, kept)
        elif kept != place.replicas or back:
            self._begin(place, (*kept, *back))

    def _begin(self, place: ShardPlace, replicas: tuple[str, ...]) -> None:
        primary = place.primary if place.primary in replicas else replicas[0]
        self._disks |= {each: self.replicas[each].disk for each in replicas}
        self._put(replace(place, epoch=place.epoch + 1, primary=primary, replicas=replicas))

    def _change_view(self) -> None:
        """It takes a step from the seal to the start."""
        there = tuple(each for each in self.members if each in self.sequencers)
        if self.changing:
            self.changing = ""
            left = [each for each in there if each in self.view]
            if left or not self.view:
                self.view, self.number = there, self.number + 1
                self.version += 1
            return
        ready = any(each.epoch for each in self._shards.values())
        if not self.view:
            begins = ready and there == self.members
        else:
            begins = there != self.view and any(each in there for each in self.view)
        if begins:
            self.changing = _SEALING

    def _kept(self, place: ShardPlace) -> tuple[str, ...]:
        """Replicas of the epoch that are there with the disks that it counts on."""
        return tuple(
            each
            for each in place.replicas
            if each in self.replicas and self.replicas[each].disk == self._disks[each]
        )

    def _is_led(self, place: ShardPlace) -> bool:
        return place.primary in self._kept(place)

    def _is_there(self, nodes: tuple[str, ...]) -> bool:
        return all(each in self.replicas for each in nodes)

    def _open(self) -> list[ShardPlace]:
        return [each for each in self._shards.values() if each.open and not each.removed]

    def _put(self, place: ShardPlace) -> None:
        self._shards[place.name] = place
        self.version += 1

    def survey(self) -> LogSurvey:
        shards = tuple(self._shards.values())
        nodes = [each for place in shards if not place.removed for each in place.replicas]
        silent = [each for each in self.members if each not in self.sequencers]
        silent += [each for each in nodes if each not in self.replicas]
        controller = min(self.sequencers)
        return LogSurvey(
            node=controller,
            version=self.version,
            term=1,
            view=self.number,
            leader=self.view[0] if self.view else "",
            members=tuple((each, 1) for each in self.view),
            sequencers=self.members,
            mode="m",
            durability="fsync",
            shards=shards,
            lost_views=(),
            controller=controller,
            age_ms=50,
            obstacle="",
            changing=self.changing,
            silent=tuple(silent),
            leaving=(),
            taking_over=tuple(
                each.name
                for each in shards
                if each.epoch and not each.removed and not self._is_led(each)
            ),
        )

    def status(self) -> SequencingStatus:
        return SequencingStatus(
            version=self.version,
            view=self.number,
            leader=self.leader,
            members=self.view,
            mode="m",
            durability="fsync",
            stable=self.tail,
            tail=self.tail,
            trimmed=self.trimmed,
            backlog_records=0,
            backlog_bytes=0,
            ring_bytes_max=0,
            shards=(),
        )
