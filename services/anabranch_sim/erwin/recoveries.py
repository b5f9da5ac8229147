"""Deaths within recoveries: when a certain step is done, somebody who takes part in it dies."""

from functools import partial

from anabranch.core.erwin.protocol.letters import (
    Configuration,
    LearnShard,
    Push,
    SealShard,
    ShardSealed,
)
from anabranch.core.erwin.protocol.rows import Fence
from anabranch.core.machine import Effect, Persist, Send
from anabranch.core.sequencing.protocol.letters import (
    AskState,
    Drop,
    Prepare,
    Prepared,
    Seal,
    Sealed,
    Start,
    State,
)
from anabranch.core.types import MS
from anabranch_sim.erwin.deployment import ErwinDeployment
from anabranch_sim.world.events import SECOND

STEPS = (
    Seal,
    Sealed,
    Prepare,
    AskState,
    State,
    Prepared,
    Persist,
    Configuration,
    Start,
    Push,
    Drop,
    SealShard,
    ShardSealed,
    LearnShard,
)
"""In the order of a view change, and of a takeover: each is where the one before has its effect. A
controller's Persist is its decision; Push and Drop count where a leader's fence is new.
"""


class RecoveryTrap:
    def __init__(self, deployment: ErwinDeployment) -> None:
        self._deployment = deployment
        self._world = deployment.world
        self._step: type | None = None
        self._skips = 0
        self._fences: set[Fence] = set()
        self._views: set[int] = set()
        self._overhear = deployment.witness.observe
        deployment.around.overhear = self._observe

    def arm(self) -> None:
        """The next time, or a little later."""
        rng = self._world.rng
        self._step = rng.choice(STEPS)
        self._skips = rng.choice((0, 0, 1, 2))

    def disarm(self) -> None:
        self._step = None

    def _observe(self, node: str, effect: Effect) -> None:
        self._overhear(node, effect)
        done = effect.message if isinstance(effect, Send) else effect
        if not self._is_step(node, done) or not isinstance(done, self._step or ()):
            return
        if self._skips:
            self._skips -= 1
            return
        self._step = None
        victims = [node]
        if isinstance(effect, Send) and effect.to in self._deployment.processes:
            victims.append(effect.to)
        victim = self._world.rng.choice(victims)
        self._world.note("dies within a recovery, at", type(done).__name__, victim)
        delay = self._world.between(0, 2 * MS)
        self._world.after(delay, partial(self._kill, victim))

    def _is_step(self, node: str, done: object) -> bool:
        """Pushes and drops go on all the time."""
        match done:
            case Push(fence=fence):
                new = fence not in self._fences
                self._fences.add(fence)
                return new
            case Drop(view=view):
                new = view not in self._views
                self._views.add(view)
                return new
            case Persist():
                return node in self._deployment.controllers
            case _:
                return True

    def _kill(self, victim: str) -> None:
        world = self._world
        down = world.between(5 * MS, world.rng.choice((50 * MS, SECOND)))
        self._deployment.processes[victim].die(down=down, power=world.chance(0.5))
