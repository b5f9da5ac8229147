"""What a controller does beside leading: all decisions, from what nodes say of themselves.

It begins with the journaled configuration and nothing else, and goes with the lead.
"""

from collections.abc import Callable

from anabranch.core.erwin.controller.config import ControllerConfig
from anabranch.core.erwin.controller.contacts import Contacts
from anabranch.core.erwin.controller.epochs import Epochs
from anabranch.core.erwin.controller.plan import Plan
from anabranch.core.erwin.controller.shards import Shards
from anabranch.core.erwin.controller.stragglers import Stragglers
from anabranch.core.erwin.controller.views import Views
from anabranch.core.erwin.protocol.letters import (
    Configuration,
    LearnShard,
    OpenShard,
    SealShard,
    ShardPresent,
    ShardSealed,
    ShardSetup,
)
from anabranch.core.sequencing.letters import Prepared, Present, Sealed, SequencingLetter
from anabranch.core.types import Nanoseconds

ToNode = SequencingLetter | Configuration | SealShard | LearnShard
FromNode = Present | Sealed | Prepared | ShardPresent | ShardSealed | OpenShard


class Lead:
    def __init__(
        self,
        config: ControllerConfig,
        plan: Plan,
        *,
        now: Nanoseconds,
        sequencers: Contacts[Present],
        replicas: Contacts[ShardPresent],
        send: Callable[[str, ToNode], None],
    ) -> None:
        self.plan = plan
        self.forgotten = ""
        """A node that knows of a later configuration than the journal: it has lost some, and
        nothing is decided any more.
        """
        self._send = send
        self._heard: ShardPresent | None = None
        """In this step."""
        accepts = config.accept_loss and not config.fsync
        self.stragglers = Stragglers(plan.limits)
        self.epochs = Epochs(plan, replicas, now=now, accept_loss=accepts, send=send)
        self.shards = Shards(plan, self.epochs, replicas, sequencers)
        self.views = Views(
            plan,
            sequencers,
            self.shards,
            self.stragglers,
            now=now,
            accept_loss=accepts,
            send=send,
        )
        self._begin(config)

    def received(self, letter: FromNode, now: Nanoseconds) -> None:
        """`Present` and `ShardPresent` are known to the contacts by now."""
        match letter:
            case Present():
                self._compare(letter.node, letter.version, letter.view)
                self.views.present(letter, now)
            case ShardPresent():
                self._compare(letter.node, letter.version, 0)
                self._heard = letter
                self.epochs.present(letter)
            case Sealed() | Prepared():
                self.views.received(letter)
            case ShardSealed():
                self.epochs.sealed(letter, now)
            case OpenShard():
                self.shards.asked(letter)

    def settle(self, now: Nanoseconds) -> Configuration | None:
        """The end of a step: what is to be journaled, if that is decided."""
        if not self.forgotten:
            self.shards.watch(now, self._heard)
            self.epochs.watch(now)
            self.views.watch(now)
        self._heard = None
        return self.plan.take()

    def journaled(self, now: Nanoseconds) -> Configuration:
        """Now everybody may know."""
        configuration = self.plan.journaled()
        assert configuration.term == self.plan.term, "another lead's entries come by the group"
        for node in nodes_of(configuration):
            self._send(node, configuration)
        self.views.journaled(now)
        return configuration

    def was_away(self) -> None:
        self.stragglers.begin()

    def _begin(self, config: ControllerConfig) -> None:
        """The first configuration of a lead is of its own term: whatever was journaled before it
        is known, and nothing of an earlier term comes after.
        """
        known = self.plan.configuration
        assert known.term < self.plan.term or not known.version, "each lead has a term of its own"
        self.plan.decide(fsync=config.fsync, sequencers=config.sequencers)
        if not known.version:
            for number, shard in enumerate(config.shards):
                setup = ShardSetup(number=number, name=shard.name, nodes=shard.nodes)
                self.plan.set_shard(setup)

    def _compare(self, node: str, version: int, view: int) -> None:
        known = self.plan.configuration
        if version < known.version and node in nodes_of(known):
            self._send(node, known)
        elif version > known.version or (view and view > (known.view.number if known.view else 0)):
            self.forgotten = node


def nodes_of(configuration: Configuration) -> tuple[str, ...]:
    """Everybody who is told: also replicas of removed shards, for they have to know that."""
    shards = [node for shard in configuration.shards for node in shard.nodes]
    view = configuration.view.nodes if configuration.view is not None else ()
    return tuple(dict.fromkeys((*configuration.sequencers, *view, *shards)))
