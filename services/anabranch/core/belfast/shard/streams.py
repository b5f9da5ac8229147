"""One subscriber of a shard, and what it has been told."""

from collections.abc import Sequence

from anabranch.core.belfast.ledger.ledger import Ledger
from anabranch.core.belfast.ledger.windows import ShardId
from anabranch.core.belfast.protocol.messages import Confirmed, Eras, Subscribe
from anabranch.core.machine import Effect, Reply, Token
from anabranch.core.types import LocalSequence, Position

_NOTHING = -1


class Stream:
    __slots__ = (
        "confirmed",
        "credit",
        "era",
        "fetching",
        "known",
        "next",
        "over",
        "shard",
        "start",
        "token",
        "upto",
        "where",
    )

    def __init__(self, *, token: Token, shard: ShardId, message: Subscribe, credit: int) -> None:
        self.token = token
        self.shard = shard
        """Another than the one that serves it: for that it stands in."""
        self.start = message.start
        self.where = message.where
        self.credit = credit
        self.next: LocalSequence = _NOTHING
        """What is delivered next; not known before the windows have come to `start`."""
        self.upto: Position = message.start
        """Everything of the shard's below was delivered."""
        self.era: Position = _NOTHING
        """Where the last era starts that was told."""
        self.known: Position = _NOTHING
        self.confirmed: Position = _NOTHING
        self.fetching = False
        self.over = False

    @property
    def begun(self) -> bool:
        return self.next != _NOTHING

    def tell_eras(self, ledger: Ledger, effects: list[Effect]) -> None:
        """Before anything reaches into them. One at whose start nothing is published may still
        become another, and isn't told.
        """
        known = ledger.horizon
        if known <= self.known or known <= self.start:
            return
        eras = [era for era in ledger.eras if self.era < era.start < known]
        if self.era == _NOTHING:
            earlier = [era for era in eras if era.start <= self.start]
            eras = eras[max(0, len(earlier) - 1) :]
        if eras:
            self.era = eras[-1].start
        self.known = known
        names = ledger.members
        told = tuple((era.start, tuple(names[id].name for id in era.shards)) for era in eras)
        effects.append(Reply(self.token, Eras(told, known)))

    def tell_confirmed(self, confirmed: Confirmed, effects: list[Effect]) -> None:
        if confirmed.upto > self.confirmed:
            self.confirmed = confirmed.upto
            effects.append(Reply(self.token, confirmed))


def names_of(ledger: Ledger, shards: Sequence[ShardId]) -> tuple[str, ...]:
    return tuple(ledger.members[shard].name for shard in shards)
