"""What clients ask a replica of a shard, and who else should be asked."""

from collections.abc import Callable
from typing import Any

from anabranch.core.belfast.ledger.ledger import Member, Standing
from anabranch.core.belfast.protocol import checks
from anabranch.core.belfast.protocol.directory import Directories
from anabranch.core.belfast.protocol.messages import (
    Append,
    Elsewhere,
    Inspect,
    Join,
    Leave,
    Locate,
    Subscribe,
    Trim,
)
from anabranch.core.belfast.shard.appends import Acknowledging
from anabranch.core.belfast.shard.counters import ShardCounters
from anabranch.core.belfast.shard.decision_log import Following
from anabranch.core.belfast.shard.deliveries import Delivering
from anabranch.core.belfast.shard.positions import Seating
from anabranch.core.belfast.shard.stand_in import check_start, failure_of, server_of
from anabranch.core.errors import (
    AnabranchError,
    BadRequest,
    ShardAway,
    ShardLeft,
    UnknownShard,
)
from anabranch.core.errors.refused import Refused
from anabranch.core.limits import Limits
from anabranch.core.machine import Effect, Reply, Token
from anabranch.core.records import batch as batches
from anabranch.core.replication.replica import Replica, Role
from anabranch.core.wire.session import Cancel, Credit

FORGOTTEN = (
    "its sequencers have lost decisions that it had journaled, and would give positions out again: "
    "restore their journals"
)
"""Why nothing is served."""


class Serving:
    """Of a replica in any role: those that can't serve say who may."""

    def __init__(
        self,
        limits: Limits,
        following: Following,
        replica: Replica,
        seating: Seating,
        acknowledging: Acknowledging,
        delivering: Delivering,
        effects: list[Effect],
        counters: ShardCounters,
    ) -> None:
        self._config = following.config
        self._limits = limits
        self._following = following
        self._replica = replica
        self._seating = seating
        self._acknowledging = acknowledging
        self._delivering = delivering
        self._effects = effects
        self._counters = counters
        self._directories = Directories()
        self.closing = False
        """The process is about to end: it takes no more appends."""
        self._table: dict[type, Callable[[Token, Any], None]] = {
            Append: self._append,
            Subscribe: self._subscribe,
            Credit: lambda _, message: delivering.credit(message),
            Cancel: lambda _, message: self.drop(message.request),
            Locate: self._locate,
            Trim: self._ask_leader,
            Leave: self._ask_leader,
            Join: self._ask_leader,
            Inspect: self._ask_leader,
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
        self._acknowledging.drop(token)
        self._delivering.drop(token)

    def elsewhere(self, shard: Member) -> Elsewhere:
        """Whom to ask about a shard that isn't served here, if not this node, later."""
        primary = server_of(self._following.ledger, shard).primary
        return Elsewhere("" if primary == self._config.node else primary)

    def _leads(self, me: Member) -> bool:
        return self._replica.role is Role.PRIMARY and self._replica.epoch == me.epoch

    def _append(self, token: Token, message: Append) -> None:
        name, me = self._config.shard, self._following.me
        if self.closing:
            raise ShardAway(name, "this replica is about to end")
        self._check_heard(name, me)
        if me is None:
            raise ShardAway(name, "it isn't admitted yet")
        if self._seating.forgotten:
            raise ShardAway(name, FORGOTTEN)
        if not self._leads(me):
            primary = "" if me.primary == self._config.node else me.primary
            self._effects.append(Reply(token, Elsewhere(primary)))
            return
        if me.standing is Standing.FAILED:
            raise ShardAway(name, "it has failed, and is to be admitted again")
        header = batches.check(message.batch, self._limits, f"an append to shard {name}")
        if self._replica.log.journal.obstacle is not None:
            raise ShardAway(name, self._replica.log.journal.obstacle)
        confirmed = self._seating.confirmed
        if self._acknowledging.repeats(token, message.batch, header, confirmed):
            return
        if me.standing is Standing.LEFT or self._leaves_before(me, header.count):
            raise ShardLeft(name)
        self._acknowledging.append(token, message.batch, header)

    def _check_heard(self, shard: str, me: Member | None) -> None:
        """Say for what this replica waits, unless another one serves."""
        awaited = self._seating.awaited
        if awaited is not None and (me is None or me.primary == self._config.node):
            raise ShardAway(shard, awaited)

    def _leaves_before(self, me: Member, count: int) -> bool:
        """Is it leaving, and without a place for so many more records?"""
        return me.standing is Standing.LEAVING and self._replica.log.last + count > me.placed

    def _subscribe(self, token: Token, message: Subscribe) -> None:
        ledger, me = self._following.ledger, self._following.me
        self._check_heard(message.shard, me)
        shard = ledger.member(message.shard)
        if shard is None and me is not None:
            raise UnknownShard(message.shard)
        if shard is None or me is None:
            raise ShardAway(message.shard, "it isn't admitted yet")
        if self._seating.forgotten:
            raise ShardAway(message.shard, FORGOTTEN)
        server = server_of(ledger, shard)
        if server.id != me.id or not self._leads(me):
            self._effects.append(Reply(token, self.elsewhere(shard)))
            return
        if shard.id != me.id:
            check_start(shard, message.start)
        self._delivering.open(token, shard.id, message)
        if shard.id != me.id and message.start <= shard.void_upto:
            # Who has come further was told: it goes beyond what was published then.
            self._effects.append(Reply(token, failure_of(shard)))

    def _locate(self, token: Token, message: Locate) -> None:
        following = self._following
        found = self._directories.of(following.ledger, following.applied, following.leader)
        self._effects.append(Reply(token, found))

    def _ask_leader(self, token: Token, message: object) -> None:
        self._effects.append(Reply(token, Elsewhere(self._following.leader)))
