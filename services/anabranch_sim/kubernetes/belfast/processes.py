"""The Belfast log of a simulation: its processes live with their pods, its windows go on, and what
is asked of its sequencers may come late, twice, or not at all.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

from msgspec import Struct

from anabranch.core.errors import DeadlineExceeded
from anabranch.core.errors.refused import Refused
from anabranch.core.types import MS, Nanoseconds
from anabranch_operator.api import names
from anabranch_operator.plan.engine.actions import JoinShard, LeaveShard
from anabranch_operator.plan.engine.events import Visit, Visited
from anabranch_operator.plan.engine.objects import Observed
from anabranch_sim.kubernetes.cluster.plane import ServiceFaults
from anabranch_sim.kubernetes.cluster.waiting import Turn
from anabranch_sim.kubernetes.log_model import LogModel, Replica
from anabranch_sim.world.events import SECOND, World

VISIT: Nanoseconds = 5 * SECOND
MOVE: Nanoseconds = 10 * SECOND
"""How long the operator waits for an answer; `service/log_client.py` says so."""
_RESTING: Nanoseconds = 5 * SECOND
_ROUNDS = 8
"""After so many in which nothing has moved an idle log rests, as a real one does."""


class Process(Struct):
    """What runs in a pod."""

    uid: str
    address: str
    node: str
    disk: int
    members: tuple[str, ...]
    """If it is a sequencer."""
    replica: Replica | None
    """If it isn't."""
    heard_at: Nanoseconds
    """From then on the others hear of it."""


class BelfastProcesses:
    """One log, where its volumes are; the sequencers of a later set find it again on them."""

    def __init__(self, world: World, made: Callable[[], LogModel]) -> None:
        """`made`: a log that begins."""
        self._made = made
        self.log = made()
        self.service_faults = ServiceFaults()
        self.away_until: Nanoseconds = 0
        """Nobody reaches the sequencers from where operators are."""
        self.asked = 0
        """To move shards."""
        self.busy_until: Nanoseconds = 0
        """Somebody appends to it."""
        self.lost: dict[str, None] = {}
        """Nodes that nothing is heard of."""
        self.by_uid: dict[str, Process] = {}
        """By the UIDs of their pods."""
        self.lives: dict[str, str] = {}
        """Whom the sequencers hear, by address, and in which pod that lives."""
        self.stepped: list[Callable[[], None]] = []
        """Told whenever the log has gone on."""
        self._world = world
        self._disks: dict[int, None] = {}
        """Of sequencers that ever knew this log."""
        self._rounds = _ROUNDS
        self._again()

    def begin(self, pod: Observed, disk: int) -> None:
        """Its container starts."""
        told = {each["name"]: each.get("value") for each in pod.spec["containers"][0]["env"]}
        address = str(told["ANABRANCH_ADDRESS"])
        members: tuple[str, ...] = ()
        replica = None
        if pod.labels[names.ROLE] == names.SEQUENCER:
            members = tuple(str(told["ANABRANCH_MEMBERS"]).split(","))
        else:
            others = tuple(str(told["ANABRANCH_REPLICAS"]).split(","))
            replica = Replica(pod.uid, str(told["ANABRANCH_SHARD"]), others, disk)
        heard_at = self._world.now + self._world.between(100 * MS, 8 * SECOND)
        self.by_uid[pod.uid] = Process(
            pod.uid, address, pod.spec["nodeName"], disk, members, replica, heard_at
        )

    def end(self, uid: str) -> None:
        self.by_uid.pop(uid, None)

    def silence(self, uid: str, duration: Nanoseconds) -> None:
        """It lives, and nobody hears of it for a while."""
        found = self.by_uid.get(uid)
        if found is not None:
            found.heard_at = max(found.heard_at, self._world.now + duration)

    def serves(self, process: Process) -> bool | None:
        """What it answers a probe: a sequencer knows who leads, a replica serves its shard. None:
        as before, for whoever isn't heard of doesn't know so.
        """
        if not self._is_heard(process):
            return None
        if process.replica is None:
            return self.log.orders(process.address)
        return self.log.serves(process.address)

    # What operators ask.

    def visit(self, visit: Visit, turn: Turn, told: Callable[[Any], None]) -> None:
        def look() -> Visited:
            found = self.log.report()
            if isinstance(found, Refused):
                return Visited(visit.ref, visit.uid, why=found.message)
            return Visited(visit.ref, visit.uid, found)

        late = Visited(visit.ref, visit.uid, why="no sequencer has answered in time")
        self._ask(look, late, VISIT, turn, told)

    def move(self, action: JoinShard | LeaveShard, turn: Turn, told: Callable[[Any], None]) -> None:
        """Somebody may have changed his mind before it comes there."""

        def act() -> Refused | None:
            joins = isinstance(action, JoinShard)
            return self.log.join(action.shard) if joins else self.log.leave(action.shard)

        self.asked += 1
        late = Refused.of(DeadlineExceeded(type(action).__name__, MOVE // MS))
        self._ask(act, late, MOVE, turn, told, may_repeat=True)

    def _ask(
        self,
        act: Callable[[], Any],
        late: Any,
        patience: Nanoseconds,
        turn: Turn,
        told: Callable[[Any], None],
        *,
        may_repeat: bool = False,
    ) -> None:
        world, service_faults, over = self._world, self.service_faults, [False]

        def tell(outcome: Any) -> None:
            if not over[0]:
                over[0] = True
                turn(partial(told, outcome))

        world.after(patience, partial(tell, late))
        if not world.chance(service_faults.lost):
            world.after(self._delay(), partial(self._arrive, act, tell))
        if may_repeat and world.chance(service_faults.twice):
            world.after(self._delay(), partial(self._arrive, act, tell))

    def _arrive(self, act: Callable[[], Any], tell: Callable[[Any], None]) -> None:
        world = self._world
        if world.now < self.away_until:
            again = self.away_until - world.now + world.between(0, SECOND)
            world.after(again, partial(self._arrive, act, tell))
            return
        outcome = act()
        if not world.chance(self.service_faults.unanswered):
            world.after(self._delay(), partial(tell, outcome))

    def _delay(self) -> Nanoseconds:
        world = self._world
        if world.chance(self.service_faults.tail):
            return world.between(100 * MS, 8 * SECOND)
        return world.between(MS // 2, 5 * MS)

    # How the log goes on.

    def _again(self) -> None:
        pause = _RESTING if not self._rounds else self._world.between(SECOND // 2, 3 * SECOND)
        self._world.after(pause, self._step)

    def _step(self) -> None:
        heard = [each for each in self.by_uid.values() if self._is_heard(each)]
        sequencers = {each.address: None for each in heard if each.replica is None}
        replicas = {each.address: each.replica for each in heard if each.replica is not None}
        self._recognize([each for each in heard if each.replica is None])
        log = self.log
        moves = log.moving or (sequencers, replicas) != (log.sequencers, log.replicas)
        busy = moves or self._world.now < self.busy_until
        self._rounds = _ROUNDS if busy else max(0, self._rounds - 1)
        self.lives = {each.address: each.uid for each in heard}
        if self._rounds:
            log.step(sequencers, replicas)
        if not log.leader:
            self._rounds = _ROUNDS
        for told in self.stepped:
            told()
        self._again()

    def _recognize(self, heard: list[Process]) -> None:
        """Of sequencers whose disks are all new nobody knows what was decided before."""
        if not heard:
            return
        members = heard[0].members
        if 2 * len(heard) <= len(members):
            return
        if not any(each.disk in self._disks for each in heard):
            self._world.note("a log begins")
            self.log = self._made()
            self._disks.clear()
        self.log.members = members
        self._disks |= {each.disk: None for each in heard}

    def _is_heard(self, process: Process) -> bool:
        return process.heard_at <= self._world.now and process.node not in self.lost
