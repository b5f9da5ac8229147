"""The background ordering of an Erwin log: this node's part in it, from lead to lead."""

from anabranch.core.alarms import Alarms
from anabranch.core.errors import AnabranchError
from anabranch.core.erwin.orderer.counters import OrdererCounters
from anabranch.core.erwin.orderer.patience import Patience
from anabranch.core.erwin.orderer.pushing import Pushing
from anabranch.core.erwin.orderer.row_groups import PushBounds
from anabranch.core.erwin.orderer.trims import Trims
from anabranch.core.erwin.protocol.letters import Configuration, Pushed, Stale
from anabranch.core.erwin.protocol.rows import Fence
from anabranch.core.machine import Effect, Token
from anabranch.core.sequencing.state.replica_part import SequencingPart
from anabranch.core.sequencing.view import View
from anabranch.core.types import Position


class Ordering:
    """A part of a machine, beside the sequencing replica whose ring it orders.

    Its owner calls `settle` at the end of each step, before the replica's.
    """

    def __init__(
        self,
        replica: SequencingPart,
        effects: list[Effect],
        alarms: Alarms,
        *,
        bounds: PushBounds,
        counters: OrdererCounters,
        patience: Patience,
    ) -> None:
        self.configuration: Configuration | None = None
        """The latest that is known here; whether this node leads or not."""
        self.pushing: Pushing | None = None
        """While this node orders."""
        self.counters = counters
        self.stirred = False
        """Since the last `settle` something has happened that may lead to more."""
        self.shards: frozenset[str] = frozenset()
        """Names of those that take new records."""
        self._replica = replica
        self._effects = effects
        self._alarms = alarms
        self._bounds = bounds
        self._patience = patience
        self._trims = Trims(effects)
        replica.on_started = self._started
        replica.on_ended = self._ended
        replica.on_stable = self._on_stable

    @property
    def version(self) -> int:
        """Of the configuration; 0: none is known yet."""
        return self.configuration.version if self.configuration else 0

    @property
    def leader(self) -> str:
        """The node that clients ask for what only the leader answers; empty if none is known."""
        view = self.view
        return view.leader if view is not None else ""

    @property
    def view(self) -> View | None:
        """The latest that is known here, by the configuration or by the replica."""
        configured = self.configuration.view if self.configuration else None
        started = self._replica.view
        if configured is None or (started is not None and started.number > configured.number):
            return started
        return configured

    @property
    def obstacle(self) -> str | None:
        """Why a leader doesn't order; None if it does, or doesn't lead."""
        pushing = self.pushing
        if pushing is None:
            return None
        if pushing.over:
            return "another node leads by now"
        if not pushing.cursors:
            return "no shard is known yet"
        if pushing.awaits_shard:
            return f"shard {pushing.awaits_shard} isn't known yet"
        return None

    @property
    def leading(self) -> Pushing | None:
        """Set while this node orders and hasn't heard of a later leader."""
        pushing = self.pushing
        return None if pushing is None or pushing.over else pushing

    @property
    def idle(self) -> bool:
        """Everything in the ring is ordered, and stable."""
        replica = self._replica
        return (
            self.pushing is not None
            and self.pushing.idle
            and not len(replica.ring)
            and replica.stable == replica.ordered
        )

    def configured(self, configuration: Configuration) -> None:
        """A controller says what it decided last; an earlier decision changes nothing."""
        assert configuration.version > 0, "configurations are numbered from 1"
        if configuration.version > self.version:
            self.configuration = configuration
            self.shards = frozenset(
                setup.name
                for setup in configuration.shards
                if setup.epoch > 0 and setup.open and not setup.removed
            )
            self._arrange()

    def answered(self, sender: str, answer: Pushed) -> None:
        if self.pushing is not None:
            self.pushing.answered(sender, answer)

    def refused(self, sender: str, letter: Stale) -> None:
        if self.pushing is not None:
            self.pushing.refused(sender, letter)

    def linked(self, node: str) -> None:
        if self.pushing is not None:
            self.pushing.linked(node)

    def trim(self, pushing: Pushing, token: Token, position: Position) -> AnabranchError | None:
        """Only the leader trims: it knows what is stable. Says what stands in the way."""
        assert pushing is self.pushing
        return self._trims.ask(token, position, ordered=self._replica.ordered)

    def gone(self, token: Token) -> None:
        self._trims.gone(token)

    def settle(self) -> None:
        self.stirred = False
        pushing, trims = self.pushing, self._trims
        if pushing is not None and len(trims):
            pushing.trim = max(pushing.trim, trims.begun(self._replica.stable))
        if pushing is not None:
            pushing.settle()
        if not len(trims):
            return
        if pushing is not None:
            self.counters.trims += trims.done(pushing.trimmed)
        if self.leading is None:
            trims.abandon("")

    def _started(self, view: View) -> None:
        """Whatever was pushed by an earlier start is void from `ordered` on: this one may cut other
        groups and choose other shards.
        """
        self.stirred = True
        self._stop()
        if not self._replica.leads:
            return
        assert self._replica.begun > 0, "a leader journals that it begins"
        self.counters.leads += 1
        self.pushing = Pushing(
            Fence(view.number, self._replica.begun),
            self._replica,
            self._effects,
            self._alarms,
            bounds=self._bounds,
            counters=self.counters,
            patience=self._patience,
        )
        self._arrange()

    def _ended(self) -> None:
        self._stop()

    def _on_stable(self, stable: Position) -> None:
        """Shards are told."""
        assert stable == self._replica.stable
        assert stable <= self._replica.ordered
        self.stirred = True

    def _stop(self) -> None:
        if self.pushing is not None:
            self.pushing.close()
            self.pushing = None

    def _arrange(self) -> None:
        """A configuration of an earlier view may lack a shard that acknowledged appends name, and
        one of a later view is for another leader.
        """
        pushing, configuration = self.pushing, self.configuration
        if pushing is None or configuration is None or configuration.view is None:
            return
        if configuration.view.number == pushing.fence.view:
            pushing.arrange(configuration)
        elif configuration.view.number > pushing.fence.view:
            pushing.over = True
