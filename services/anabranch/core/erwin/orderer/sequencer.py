"""A sequencer of an Erwin log: a sequencing replica that orders while it leads (LazyLog, 4).

Every sequencer answers appends and says where things are. The leader pushes its ring to the
shards, and answers what only it knows.
"""

from collections.abc import Sequence
from typing import Any

from anabranch.core.alarms import Alarms
from anabranch.core.errors import AnabranchError, BadRequest, ShardAway, Unavailable
from anabranch.core.errors.refused import Refused
from anabranch.core.erwin.orderer.config import SequencerConfig
from anabranch.core.erwin.orderer.counters import OrdererCounters
from anabranch.core.erwin.orderer.inspections import Inspections
from anabranch.core.erwin.orderer.ordering import Ordering
from anabranch.core.erwin.orderer.patience import Patience
from anabranch.core.erwin.orderer.pushing import Pushing
from anabranch.core.erwin.orderer.shard_wishes import ShardWishes
from anabranch.core.erwin.orderer.status import survey
from anabranch.core.erwin.protocol.checks import fault_in
from anabranch.core.erwin.protocol.directory import Directories, other_durability
from anabranch.core.erwin.protocol.letters import Configuration, Control, Pushed, Stale
from anabranch.core.limits import Limits
from anabranch.core.machine import (
    Effect,
    Effects,
    Event,
    Reply,
    Token,
)
from anabranch.core.sequencing.controller.draining import Draining
from anabranch.core.sequencing.protocol.checks import check
from anabranch.core.sequencing.protocol.letters import Dropped
from anabranch.core.sequencing.protocol.messages import (
    Append,
    AppendMeta,
    Elsewhere,
    Inspect,
    Locate,
    LogSurvey,
    SetShardOpen,
    Survey,
    Trim,
)
from anabranch.core.sequencing.replica import SequencingReplica
from anabranch.core.serving_machine import ServingMachine
from anabranch.core.types import Nanoseconds


class Sequencer(ServingMachine):
    """A machine."""

    def __init__(self, config: SequencerConfig, limits: Limits) -> None:
        self.config = config
        self.counters = OrdererCounters()
        self._effects: list[Effect] = []
        self._alarms = Alarms(self._effects)
        self.replica = SequencingReplica(config.replica, limits, self._effects, self._alarms)
        self.ordering = Ordering(
            self.replica,
            self._effects,
            self._alarms,
            bounds=config.bounds,
            counters=self.counters,
            patience=Patience(limits.noop_ms),
        )
        self._draining = Draining(
            self.replica,
            self._effects,
            self._alarms,
            limits,
            view=lambda: self.ordering.view,
            ordered=lambda: self.ordering.pushing is None or self.ordering.idle,
            hands_over=config.hands_over,
        )
        self._inspections = Inspections(
            self.ordering, self.replica, self._effects, self._alarms, limits
        )
        self._wishes = ShardWishes(
            config.controllers, self._effects, self._alarms, config.bounds.retry_ms
        )
        self._directories = Directories(config.mode)
        self._control: tuple[Nanoseconds, Control] | None = None
        """What the controller that leads has said last, and when."""
        self._orders_soon = False
        self._mode = config.mode
        """As the controllers say; they keep the mode that the log began with."""

    # What it knows, for whoever shows it.

    @property
    def obstacle(self) -> str | None:
        """Why it can't do its part; None if it can."""
        if self.replica.obstacle is not None:
            return self.replica.obstacle
        if self._mode is not self.config.mode:
            return f"it was started in mode {self.config.mode}, and the log's mode is {self._mode}"
        if self.ordering.configuration is None:
            return "no controller has told it the configuration yet"
        return self._other_durability or self.ordering.obstacle

    @property
    def _other_durability(self) -> str | None:
        """Why it can't be a member, nor take appends if it is one: it keeps what it takes in
        another way than the log has promised.
        """
        known = self.ordering.configuration
        if known is None or known.fsync == self.config.fsync:
            return None
        return f"it {other_durability(self.config.fsync, known.fsync)}"

    # A machine.

    def recover(self, snapshot: bytes | None) -> None:
        self.replica.recover(snapshot)

    def replayed(self, index: int, entry: bytes) -> None:
        self.replica.replayed(index, entry)

    def start(self, now: Nanoseconds) -> Effects:
        self._alarms.now = now
        self.ordering.stirred = True
        self.replica.start()
        return self._settled()

    def step(self, now: Nanoseconds, event: Event) -> Effects:
        self._alarms.now = now
        self.ordering.stirred = True
        self._take(event)
        return self._settled()

    def _settled(self) -> Effects:
        """What the replica learns of its journal may let the ordering go on, and the other way
        round: both are done when nothing new has come of either.
        """
        unsettled = True
        while unsettled:
            if self.ordering.stirred:
                self.ordering.settle()
            self.replica.settle()
            unsettled = self.ordering.stirred
        self._inspections.settle()
        self._draining.settle()
        return self._taken()

    def _order_soon(self) -> None:
        """Order what this step brings in one of its own, at the end of the driver's turn: clients
        are answered first.
        """
        self.ordering.stirred = False
        if self.ordering.pushing is not None and not self._orders_soon:
            self._orders_soon = True
            self._alarms.after(0, self._order)

    def _order(self) -> None:
        """The end of the step does it."""
        self._orders_soon = False

    def _persisted(self, last: int) -> None:
        self._order_soon()
        self.replica.persisted(last)

    def _persist_failed(self, error: AnabranchError) -> None:
        self.replica.persist_failed(error)

    def _gone(self, tokens: Sequence[Token]) -> None:
        for token in tokens:
            self.replica.gone(token)
            self.ordering.gone(token)
            self._inspections.gone(token)
            self._wishes.gone(token)

    def _linked(self, node: str) -> None:
        assert node != self.config.node, "no node dials itself"
        self.replica.linked(node)
        self.ordering.linked(node)

    def _drain(self) -> None:
        self._draining.begin()

    def _received(self, sender: str, letter: Any) -> None:
        match letter:
            case Configuration() | Control() if not self.replica.is_controller(sender):
                self.counters.nonsense += 1
            case Configuration() if fault_in(letter) is not None:
                self.counters.nonsense += 1
            case Configuration():
                self._configured(letter)
            case Pushed():
                self.ordering.answered(sender, letter)
            case Stale():
                self.ordering.refused(sender, letter)
            case Control():
                if self._control is None or letter.term >= self._control[1].term:
                    self._control = self._alarms.now, letter
            case Dropped():
                # It concerns the ordering only if it makes something stable, which says so itself.
                self.ordering.stirred = False
                self.counters.nonsense += not self.replica.received(sender, letter)
            case _:
                self.counters.nonsense += not self.replica.received(sender, letter)

    def _configured(self, configuration: Configuration) -> None:
        self._mode = configuration.mode
        if self._mode is not self.config.mode:
            return
        self.ordering.configured(configuration)
        known = self.ordering.configuration
        assert known is not None, "it is known from now on"
        self.replica.configured(known.version, known.sequencers)
        self._wishes.configured(self.ordering.configuration)

    # What clients ask.

    def _asked(self, token: Token, message: object) -> None:
        if isinstance(message, Append | AppendMeta):
            self._order_soon()
            obstacle = self._obstacle_to(message)
            if obstacle is not None:
                self._refuse(token, obstacle)
                return
        if self.replica.requested(token, message):
            return
        match message:
            case Locate():
                self._reply(
                    token, self._directories.of(self.ordering.configuration, self.ordering.view)
                )
            case Survey():
                self._reply(token, self._survey())
            case SetShardOpen():
                self._wish(token, message)
            case Inspect() | Trim():
                pushing = self.ordering.leading
                if pushing is None:
                    self._reply(token, Elsewhere(self._other_leader))
                else:
                    self._asked_leader(pushing, token, message)
            case _:
                what = f"{type(message).__name__.lower()} at {self.config.node}"
                self._refuse(token, BadRequest(what, "it is a sequencer: ask a shard"))

    def _obstacle_to(self, message: Append | AppendMeta) -> AnabranchError | None:
        """A shard that isn't known would hold up the ordering until a configuration names it. A
        closed one is removed when what was appended before all members knew that is trimmed; its
        clients may repeat what was appended before.
        """
        if self._draining.begun:
            return Unavailable(f"sequencer {self.config.node}", "it is about to stop")
        if self._other_durability is not None:
            return Unavailable(f"sequencer {self.config.node}", self._other_durability)
        if (
            isinstance(message, AppendMeta)
            and message.shard not in self.ordering.shards
            and not self.replica.knows(message.id)
        ):
            return ShardAway(message.shard, "it is closed, or this sequencer doesn't know it yet")
        return None

    def _survey(self) -> LogSurvey:
        now, node = self._alarms.now, self.config.node
        return survey(node, self.ordering.configuration, self._control, now)

    def _asked_leader(self, pushing: Pushing, token: Token, message: Inspect | Trim) -> None:
        if isinstance(message, Inspect):
            self._inspections.ask(token)
            return
        try:
            check(message)
            obstacle = self.ordering.trim(pushing, token, message.position)
        except BadRequest as error:
            obstacle = error
        if obstacle is not None:
            self._refuse(token, obstacle)

    def _wish(self, token: Token, message: SetShardOpen) -> None:
        try:
            check(message)
            obstacle = self._wishes.ask(token, message, self.ordering.configuration)
        except BadRequest as error:
            obstacle = error
        if obstacle is not None:
            self._refuse(token, obstacle)

    @property
    def _other_leader(self) -> str:
        leader = self.ordering.leader
        return leader if leader != self.config.node else ""

    def _reply(self, token: Token, message: object) -> None:
        self._effects.append(Reply(token, message))

    def _refuse(self, token: Token, error: AnabranchError) -> None:
        self._reply(token, Refused.of(error))
