"""A replica's place among the log's nodes: what the controllers decided, and what they are told."""

from collections.abc import Callable

from anabranch.core.alarms import Alarms
from anabranch.core.erwin.protocol.checks import fault_in
from anabranch.core.erwin.protocol.letters import (
    Configuration,
    LearnShard,
    Push,
    SealShard,
    ShardPresent,
    ShardSealed,
    ShardSetup,
)
from anabranch.core.erwin.shard.config import ErwinShardConfig
from anabranch.core.erwin.shard.contents import Contents
from anabranch.core.limits import Limits
from anabranch.core.machine import Effect, Send
from anabranch.core.replication.replica import Replica, Role
from anabranch.core.sequencing.controller.names import is_controller
from anabranch.core.types import LocalSequence, Position


class Membership:
    """Of one replica, in any role."""

    def __init__(
        self,
        config: ErwinShardConfig,
        limits: Limits,
        replica: Replica,
        contents: Contents,
        effects: list[Effect],
        alarms: Alarms,
    ) -> None:
        self.configuration: Configuration | None = None
        self.me: ShardSetup | None = None
        self.base: Callable[[], Position] = lambda: 0
        """Where the leader began whose pushes were taken last."""
        self.may_be_sealed: Callable[[], bool] = lambda: True
        self.on_configuration: Callable[[], None] = lambda: None
        self._config = config
        self._limits = limits
        self._replica = replica
        self._contents = contents
        self._effects = effects
        self._alarms = alarms
        self.leaving = False
        """The replica's process is about to end."""
        self._leaders = frozenset[str]()
        """Nodes that may order, by the latest configuration that is known here."""
        self._begun = False
        self._said: tuple[object, ...] = ()
        """What a change of is told at once."""

    @property
    def leads(self) -> bool:
        """Is this replica the primary, by the latest configuration that it knows?"""
        me = self.me
        return (
            me is not None
            and self._replica.role is Role.PRIMARY
            and self._replica.epoch == (me.epoch)
        )

    @property
    def owner(self) -> str | None:
        """The other replica of this epoch whose journal this one has; None if it has none of them.
        The epoch counts on it over there, so nothing is taken from this replica.
        """
        me, node = self.me, self._config.node
        if me is None or len(me.disks) != len(me.replicas):
            return None
        owners = zip(me.replicas, me.disks, strict=True)
        disk = self._replica.log.disk
        names = [each for each, counted in owners if counted == disk]
        return names[0] if names and node not in names else None

    def begin(self) -> None:
        """The journal says which one it is: before, nobody is to know of this replica."""
        assert not self._begun, "a replica begins once in its life"
        self._begun = True
        self._beat()

    def configured(self, configuration: Configuration) -> None:
        """Configurations are numbered: an earlier one is a late letter."""
        known = self.configuration
        if known is not None and configuration.version <= known.version:
            return
        self.configuration = configuration
        view = configuration.view
        self._leaders = frozenset((*configuration.sequencers, *(view.nodes if view else ())))
        self.me = self.setup(self._config.shard)
        me = self.me
        if me is not None:
            self._contents.number = me.number
            self._contents.mode = configuration.mode
        self.on_configuration()
        if me is not None and me.epoch:
            self._replica.arrange(me.epoch, me.primary, me.replicas, disks=me.disks)

    def takes(self, sender: str, letter: object) -> bool:
        """May it send that? The shard's own replicas are known to `Replica`."""
        match letter:
            case Configuration():
                return self._is_controller(sender) and fault_in(letter) is None
            case SealShard() | LearnShard():
                return self._is_controller(sender)
            case Push():
                return sender in self._leaders
            case _:
                return True

    def _is_controller(self, sender: str) -> bool:
        known = self._config.controllers
        return is_controller(sender, controllers=known, sequencers=self._leaders)

    def seal(self, sender: str, letter: SealShard) -> None:
        if letter.shard != self._config.shard or not self.may_be_sealed():
            return

        def answer(last_term: int, last: LocalSequence) -> None:
            sealed = ShardSealed(
                shard=letter.shard,
                node=self._config.node,
                epoch=letter.epoch,
                last_term=last_term,
                last=last,
            )
            self._effects.append(Send(sender, sealed))

        self._replica.seal(sender, letter.epoch, answer)

    def learn(self, letter: LearnShard) -> None:
        if letter.shard == self._config.shard:
            self._replica.learn(letter.epoch, letter.primary)

    def linked(self, node: str) -> None:
        if node in self._config.controllers and self._may_speak:
            self._effects.append(Send(node, self._present()))

    @property
    def is_needed(self) -> bool:
        """Is it a replica of its shard's epoch, beside others?"""
        me = self.me
        assert me is None or me.name == self._config.shard
        return me is not None and self._config.node in me.replicas and len(me.replicas) > 1

    def settle(self) -> None:
        """The end of a step: what decisions follow from is told at once."""
        if self._begun and self._news() != self._said:
            self._tell()

    def setup(self, shard: str) -> ShardSetup | None:
        """The last one of this name: a shard may have been removed and added again."""
        shards = self.configuration.shards if self.configuration is not None else ()
        return next((each for each in reversed(shards) if each.name == shard), None)

    def name_of(self, number: int | None, position: Position) -> str | None:
        """The shard of this number. None: one whose map covers this position, to be asked instead
        of this one. Returns None if the configuration doesn't know yet.
        """
        shards = self.configuration.shards if self.configuration is not None else ()
        if number is not None:
            return next((each.name for each in shards if each.number == number), None)
        others = (
            each
            for each in shards
            if each.name != self._config.shard and not each.removed and each.begins <= position
        )
        return next((each.name for each in others), None)

    @property
    def _may_speak(self) -> bool:
        """A primary that can't write falls silent, so that another replica takes over."""
        return self._begun and not self._replica.stuck

    def _beat(self) -> None:
        self._tell()
        self._alarms.after(self._limits.present_ms, self._beat)

    def _news(self) -> tuple[object, ...]:
        primary = self._replica.primary
        return (
            self._replica.role,
            self._replica.epoch,
            self.configuration.version if self.configuration is not None else 0,
            primary is not None and primary.established,
            primary.silent if primary is not None else (),
            primary.caught_up if primary is not None else (),
            self.leaving,
        )

    def _tell(self) -> None:
        self._said = self._news()
        if self._may_speak:
            letter = self._present()
            self._effects.extend(Send(node, letter) for node in self._config.controllers)

    def _present(self) -> ShardPresent:
        replica, contents, primary = self._replica, self._contents, self._replica.primary
        return ShardPresent(
            shard=self._config.shard,
            node=self._config.node,
            disk=replica.log.disk,
            epoch=replica.epoch,
            role=replica.role,
            durable=replica.log.durable,
            held=contents.durable,
            stable=contents.marks.stable,
            silent=primary.silent if primary is not None else (),
            caught_up=primary.caught_up if primary is not None else (),
            version=self.configuration.version if self.configuration is not None else 0,
            nodes=self._config.replicas,
            trimmed=contents.marks.trimmed,
            fence=replica.view,
            base=self.base(),
            established=primary is not None and primary.established,
            at=self._alarms.now,
            leaving=self.leaving,
        )
