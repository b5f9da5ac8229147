"""What a controller does beside leading: all decisions, from what nodes say of themselves.

It begins with the journaled configuration and nothing else, and goes with the lead.
"""

from collections.abc import Callable

from anabranch.core.erwin.controller.config import ControllerConfig
from anabranch.core.erwin.controller.epochs import Epochs
from anabranch.core.erwin.controller.plan import Plan
from anabranch.core.erwin.controller.shards import Shards
from anabranch.core.erwin.protocol.directory import other_durability
from anabranch.core.erwin.protocol.letters import (
    Configuration,
    Control,
    LearnShard,
    OpenShard,
    SealShard,
    ShardPresent,
    ShardSealed,
    ShardSetup,
)
from anabranch.core.quorum import MAJORITY
from anabranch.core.sequencing.controller.contacts import Contacts
from anabranch.core.sequencing.controller.stragglers import Stragglers
from anabranch.core.sequencing.controller.views import Views
from anabranch.core.sequencing.protocol.letters import Prepared, Present, Sealed, SequencingLetter
from anabranch.core.types import Nanoseconds

ToNode = SequencingLetter | Configuration | Control | SealShard | LearnShard
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
        self._sequencers = sequencers
        known = plan.configuration
        # Also a controller that was started unlike the others gives up nothing that is on a disk.
        accepts = config.accept_loss and not config.fsync and not (known.version and known.fsync)
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
        self.views.on_gone_back = self._on_gone_back
        self._begin(config)

    def _on_gone_back(self) -> None:
        self.plan.counters.unstarted += 1

    def received(self, letter: FromNode, now: Nanoseconds) -> None:
        """`Present` and `ShardPresent` are known to the contacts by now."""
        match letter:
            case Present():
                self._compare(letter.node, letter.version, letter.view)
                self.views.present(letter, now)
            case ShardPresent():
                if self._is_known(letter):
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
            self._settle_durability(now)
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

    def unfit(self, now: Nanoseconds) -> str:
        """Why a sequencer that is there can't be a member; empty: none is unfit."""
        known = self.plan.configuration
        for node in known.sequencers:
            letter = self._sequencers.present(node, now)
            if letter is not None and letter.fsync is not None and not self.plan.fits(letter):
                return f"{node} {other_durability(letter.fsync, known.fsync)}"
        return ""

    def was_away(self) -> None:
        self.stragglers.begin()

    def _begin(self, config: ControllerConfig) -> None:
        """The first configuration of a lead is of its own term: whatever was journaled before it
        is known, and nothing of an earlier term comes after.
        """
        known = self.plan.configuration
        assert known.term < self.plan.term or not known.version, "each lead has a term of its own"
        self.plan.decide(sequencers=config.sequencers)
        if not known.version:
            self.plan.decide(fsync=config.fsync)
            for number, shard in enumerate(config.shards):
                setup = ShardSetup(number=number, name=shard.name, nodes=shard.nodes)
                self.plan.set_shard(setup)

    def _settle_durability(self, now: Nanoseconds) -> None:
        """The log's durability is another one when a majority was started with that, so that no
        single process can change it.
        """
        if self.plan.busy:
            return
        known = self.plan.latest
        assert known.sequencers, "a log has sequencers"
        letters = [self._sequencers.present(node, now) for node in known.sequencers]
        said = [letter.fsync for letter in letters if letter is not None]
        if said.count(not known.fsync) >= MAJORITY.size(len(known.sequencers)):
            self.plan.decide(fsync=not known.fsync)

    def _compare(self, node: str, version: int, view: int) -> None:
        known = self.plan.configuration
        if version < known.version and node in nodes_of(known):
            self._send(node, known)
        elif version > known.version or (view and view > (known.view.number if known.view else 0)):
            self.forgotten = node

    def _is_known(self, letter: ShardPresent) -> bool:
        """Believe a replica of an unknown shard about later decisions only where no shard has begun
        yet: then the journal may have lost them all. Of others the known nodes tell.
        """
        known = self.plan.configuration
        if not any(setup.epoch for setup in known.shards):
            return True
        return any(letter.node in setup.nodes for setup in known.shards)


def nodes_of(configuration: Configuration) -> tuple[str, ...]:
    """Everybody who is told: also replicas of removed shards, for they have to know that."""
    shards = [node for shard in configuration.shards for node in shard.nodes]
    view = configuration.view.nodes if configuration.view is not None else ()
    return tuple(dict.fromkeys((*configuration.sequencers, *view, *shards)))
