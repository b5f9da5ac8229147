"""What clients ask a replica of a shard, and which node should be asked instead."""

from collections.abc import Callable
from typing import Any

from anabranch.core.errors import AnabranchError, BadRequest, ShardAway, UnknownShard
from anabranch.core.errors.refused import Refused
from anabranch.core.erwin.protocol import checks
from anabranch.core.erwin.protocol.directory import Directories
from anabranch.core.erwin.protocol.letters import ShardSetup
from anabranch.core.erwin.protocol.messages import Data, Elsewhere, Read, Subscribe
from anabranch.core.erwin.shard.config import ErwinShardConfig
from anabranch.core.erwin.shard.counters import ErwinShardCounters
from anabranch.core.erwin.shard.membership import Membership
from anabranch.core.erwin.shard.reads import Reads
from anabranch.core.erwin.shard.subscriptions import Subscriptions
from anabranch.core.erwin.shard.unordered import Unordered
from anabranch.core.machine import Effect, Reply, Token
from anabranch.core.sequencing.protocol.messages import Locate
from anabranch.core.wire.session import Cancel, Credit


class Requests:
    """To a replica in any role: one that can't serve says which one may."""

    def __init__(
        self,
        config: ErwinShardConfig,
        membership: Membership,
        reads: Reads,
        subscriptions: Subscriptions,
        unordered: Unordered,
        effects: list[Effect],
        counters: ErwinShardCounters,
    ) -> None:
        self._config = config
        self._membership = membership
        self._reads = reads
        self._subscriptions = subscriptions
        self._effects = effects
        self._counters = counters
        self._directories = Directories()
        self._table: dict[type, Callable[[Token, Any], None]] = {
            Data: unordered.store,
            Read: self._read,
            Subscribe: self._subscribe,
            Credit: lambda _, message: subscriptions.credit(message),
            Cancel: lambda _, message: self.drop(message.request),
            Locate: self._locate,
        }

    def asked(self, token: Token, message: Any) -> None:
        try:
            answer = self._table.get(message.__class__)
            if answer is None:
                raise BadRequest(type(message).__name__, "no shard answers that")
            checks.check(message)
            answer(token, message)
        except AnabranchError as error:
            self._counters.refused += 1
            self._effects.append(Reply(token, Refused.of(error)))

    def drop(self, token: Token) -> None:
        """Nobody waits any more."""
        self._reads.drop(token)
        self._subscriptions.drop(token)

    @property
    def elsewhere(self) -> Elsewhere:
        """Which node serves this replica's shard; if it is to be this one, later."""
        return self._at(self._membership.me)

    def _at(self, shard: ShardSetup | None) -> Elsewhere:
        primary = shard.primary if shard is not None else ""
        return Elsewhere("" if primary == self._config.node else primary)

    def _read(self, token: Token, message: Read) -> None:
        if self._serves(token, message.shard):
            self._reads.read(token, message)

    def _subscribe(self, token: Token, message: Subscribe) -> None:
        if self._serves(token, message.shard):
            self._subscriptions.open(token, message)

    def _locate(self, token: Token, message: Locate) -> None:
        configuration = self._membership.configuration
        view = None if configuration is None else configuration.view
        found = self._directories.of(configuration, view)
        self._effects.append(Reply(token, found))

    def _serves(self, token: Token, name: str) -> bool:
        """True for the primary of this shard. Others say where that is."""
        membership = self._membership
        if membership.configuration is None:
            raise ShardAway(name, "this replica waits for the log's controller")
        shard = membership.setup(name)
        if shard is None or shard.removed:
            raise UnknownShard(name)
        if name == self._config.shard and membership.leads:
            return True
        self._effects.append(Reply(token, self._at(shard)))
        return False
