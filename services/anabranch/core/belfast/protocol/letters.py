"""Letters between sequencers and shard replicas. A letter may be lost, repeated or late.

A node is named by the address at which others dial it. The letters of the sequencing group's
consensus are in `core/consensus/letters.py`, those among a shard's replicas in
`core/replication/letters.py`.
"""

import msgspec

from anabranch.core.belfast.ledger.ledger import Image
from anabranch.core.belfast.ledger.placements import Row
from anabranch.core.belfast.ledger.rules import Rules
from anabranch.core.belfast.ledger.windows import ShardId
from anabranch.core.types import LocalSequence


class Letter(msgspec.Struct, frozen=True, array_like=True):
    """Base."""


class Alive(Letter, frozen=True, tag="alive"):
    """A replica to every sequencer, each few T_ord: I am here, who leads?

    A shard is admitted when all its replicas have said so.
    """

    shard: str
    replicas: tuple[str, ...]
    """As it is configured: all of them, the same order everywhere."""
    quota: int
    """What the shard demands when it joins; 0: as the rules say."""
    epoch: int
    """The last that it knows of; 0: none."""
    applied: int
    """The group's entries that it has; -1: it asks for none."""
    view: int = 0
    """Of the ledger that it has."""
    standing: int = -1
    """Its shard's, by that ledger; -1: not known there. One that has failed, or left, says so when
    its local log is cut back: only then can it be admitted again.
    """
    disk: int = 0
    """Of its journal. After that was lost it is another."""
    fsync: bool = True
    """Does it hold on its disk what it says that it holds, or in its memory?"""
    placed: LocalSequence = 0
    """Of its shard's records up to here it knows all places."""


class Leading(Letter, frozen=True, tag="leading"):
    """The leader to a replica that is alive."""

    term: int
    rules: Rules
    at_rest: bool = False
    """Nobody appends: no quota is to be filled with no-ops until a record has come to the reader's
    shard, or a signal of lag asks for it.
    """


class Decided(Letter, frozen=True, tag="decided"):
    """Entries of the group's log that its majority holds, from this index on."""

    term: int
    first: int
    entries: list[bytes]


class Restored(Letter, frozen=True, kw_only=True, tag="restored"):
    """The ledger after this entry: what came before isn't kept one by one any more."""

    term: int
    index: int
    image: Image


class Report(Letter, frozen=True, tag="report", gc=False):
    """A primary to the leader: what its shard has made durable. Each holds all of those before.

    It covers so many rounds of this window exactly, no-ops included (F3). One that comes twice or
    late changes nothing.
    """

    shard: ShardId
    epoch: int
    view: int
    window: int
    rounds: int
    durable: LocalSequence
    """Its local log up to here; what a cut of free will goes by."""
    records: int
    """Real records among all that it ever made durable, as far as its primary has logged it."""
    queued: int
    """Real records that no report covers yet."""
    signal: int
    """The last signal of lag that this answers; 0: none yet."""
    applied: int
    """The group's entries that it has applied."""
    silent: tuple[str, ...] = ()
    """Replicas of its epoch that don't answer it."""
    caught_up: tuple[str, ...] = ()
    """Replicas that aren't of its epoch, and hold all that is durable."""
    foretold: int = 0
    """Real records that had their positions before the cuts that came to them."""
    voided: int = 0
    """Real records that had a position, and lost it when the shard failed."""
    noops: int = 0
    """Among what `records` are counted of."""
    delay_us: int = 0
    """How long its primary's syncs took of late, or its timers came late, at most."""


class FixLag(Letter, frozen=True, kw_only=True, tag="lag"):
    """The leader to a primary that lags: be done with so many rounds of this window at once."""

    shard: ShardId
    signal: int
    window: int
    rounds: int


class Seal(Letter, frozen=True, kw_only=True, tag="seal"):
    """The leader to the replicas of a shard whose primary is silent: take nothing of an epoch
    below this one any more, and say what you hold.
    """

    shard: ShardId
    epoch: int


class Sealed(Letter, frozen=True, kw_only=True, tag="sealed"):
    shard: ShardId
    epoch: int
    last_epoch: int
    """Of its last entry."""
    last: LocalSequence
    """Where its log ends. Who has the highest epoch, then the longest log, holds all that was
    durable."""


class Learn(Letter, frozen=True, kw_only=True, tag="learn"):
    """The leader to a replica that its shard goes on without: copy what this primary holds."""

    shard: ShardId
    epoch: int
    primary: str


class WherePlaced(Letter, frozen=True, kw_only=True, tag="where"):
    """A replica to the others of its shard: it wasn't there when these records were placed."""

    shard: str
    low: LocalSequence
    high: LocalSequence


class Places(Letter, frozen=True, kw_only=True, tag="places"):
    """What the other knows of that, by a ledger of this view: another may have voided it."""

    shard: str
    view: int
    floor: LocalSequence
    """What lies below is trimmed."""
    upto: LocalSequence
    rows: list[Row]


FromReplica = Alive | Report | Sealed
BetweenReplicas = WherePlaced | Places
FromSequencer = Leading | Decided | Restored | FixLag | Seal | Learn
