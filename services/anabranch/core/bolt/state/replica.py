"""What one replica of the metadata holds; the rules that change it are elsewhere."""

import heapq

from anabranch.core.bolt.logs.forest import Forest, Log, replay
from anabranch.core.bolt.logs.scan_plans import ScanPlans
from anabranch.core.bolt.protocol.commands import Committed, Outcome, Receipt
from anabranch.core.bolt.protocol.compaction import Swapped
from anabranch.core.bolt.protocol.compactors import Compactor, CompactorId
from anabranch.core.bolt.protocol.scans import SCANS_FORMAT
from anabranch.core.bolt.state.placement import Placement
from anabranch.core.bolt.state.references import References
from anabranch.core.bolt.state.requests import RememberedAppends, Requests
from anabranch.core.limits import Limits, with_replicated
from anabranch.core.types import Kind, LogId, Milliseconds, ObjectId, Position

COMMITS_REMEMBERED = 256
"""Objects of one broker whose results are kept."""

COMMITS_APART_MAX = COMMITS_REMEMBERED // 2
"""The numbers of two unanswered commits of a broker differ by less. So what comes later than this
was answered, and of what doesn't the result is kept: those that were applied since are fewer than
this before it, and fewer than this after it.
"""


class BrokerRecord:
    """The current life of a broker, and the results of its last commits, should it ask again."""

    __slots__ = ("committed", "epoch", "highest", "swapped")

    def __init__(self, epoch: int) -> None:
        assert epoch > 0, "epochs begin at 1"
        self.epoch = epoch
        self.committed: dict[ObjectId, Committed] = {}
        self.highest = -1
        """The number of the latest commit."""
        self.swapped: tuple[ObjectId, Swapped] | None = None
        """The outcome of its latest swap of extents: it has one in doubt at a time."""

    def is_late(self, number: int) -> bool:
        """Was this commit answered so long ago that the answer is forgotten?"""
        return 0 <= number <= self.highest - COMMITS_APART_MAX

    def remember(self, object: ObjectId, number: int, result: Committed) -> None:
        self.committed[object] = result
        self.highest = max(self.highest, number)
        if len(self.committed) > COMMITS_REMEMBERED:
            del self.committed[next(iter(self.committed))]


class Replica:
    """Forest, references, brokers and remembered requests, as of the last entry applied."""

    def __init__(self, cluster: str, limits: Limits) -> None:
        self.cluster = cluster
        self.limits = limits
        self.forest = Forest(limits)
        self.references = References()
        self.plans = ScanPlans()
        self.placement = Placement(limits.spare_brokers_max)
        self.format = 0
        """What a member must know at least to lead."""
        self.guards: dict[str, int] = {}
        """The highest epoch seen in each scope in which programs take turns."""
        self.brokers: dict[str, BrokerRecord] = {}
        self.broker_epochs = 0
        """Given so far, to brokers and compactors."""
        self.compactors: dict[CompactorId, Compactor] = {}
        """In order of their epochs. Each has a record among the brokers', but no seat."""
        self.requests: Requests[bytes, Outcome] = Requests()
        self.appends = RememberedAppends()
        """Appends that are requests of their own, apart: however many come, they take no room from
        the requests that change logs."""
        self.expiring: list[tuple[Milliseconds, LogId]] = []
        self.next_id = 1
        self.at: Milliseconds = 0
        """The latest leader's time seen; every age is measured against it."""
        self.applied = 0

    def raise_format(self, known: int) -> None:
        self.format = known
        self.references.measures = known >= SCANS_FORMAT

    def limit(self, values: dict[str, int]) -> None:
        """Judge commands by these limits from here on."""
        self.limits = self.forest.limits = with_replicated(self.limits, values)
        self.placement.spare_brokers_max = self.limits.spare_brokers_max

    def give_id(self) -> LogId:
        assert self.next_id not in self.forest.logs, "an id is given once"
        given = LogId(self.next_id)
        self.next_id += 1
        return given

    def place(self, log: Log, *, exclusive: bool = False) -> None:
        """Have a broker serve a log that is new, if brokers do."""
        if log.engine:
            return
        assert log.id in self.forest.logs, "only what is alive is served"
        if log.kind is Kind.ROOT:
            self.placement.add_root(log.id)
        elif exclusive:
            self.placement.add_alone(log.id)
        else:
            self.placement.add_fork(log.family.id)

    def remove(self, log: Log) -> None:
        """A log is no more, and nobody serves it."""
        assert log.id < self.next_id, "this id was never given"
        self.forest.remove(log)
        if log.engine:
            return
        if log.kind is Kind.ROOT:
            self.placement.remove_root(log.id)
        else:
            self.placement.remove_fork(log.id, log.family.id)

    def expire_at(self, log: Log, at: Milliseconds) -> None:
        assert at > 0
        log.expires_at = at
        heapq.heappush(self.expiring, (at, log.id))

    def next_expiry(self) -> Milliseconds | None:
        """When the next fork's time to live ends; entries of forks that are gone are dropped on
        the way.
        """
        while self.expiring:
            at, id = self.expiring[0]
            log = self.forest.logs.get(id)
            if log is not None and log.expires_at == at:
                return at
            heapq.heappop(self.expiring)
        return None

    def expired(self, now: Milliseconds) -> list[LogId]:
        found = [id for at, id in self.expiring if at <= now]
        return [id for id in found if id in self.forest.logs]

    def redeem(self, receipt: Receipt) -> tuple[Log, Position]:
        """Where a receipt's record is now; it may still move if that log has undecided promotable
        forks.

        Every promotion since moved it up by the promoted records that came before it; a fork that
        was itself promoted has its records in the parent, at the positions they had in the fork.
        """
        id, generation, position = receipt.log, receipt.generation, receipt.provisional
        graves = self.forest.graves
        while (grave := graves.get(id)) is not None and grave.promoted_into is not None:
            position = replay(grave.shifts, generation, grave.generation, grave.name, position)
            id, generation = grave.promoted_into, grave.parent_generation
        log = self.forest.find(id)
        return log, replay(log.shifts, generation, log.generation, log.name, position)

    def heir(self, id: LogId) -> Log | None:
        """The live log that has the records of this one after all promotions; None if none has."""
        graves = self.forest.graves
        into: LogId | None = id
        while into is not None and (grave := graves.get(into)) is not None:
            into = grave.promoted_into
        return None if into is None else self.forest.logs.get(into)

    def whereabouts(self, receipt: Receipt) -> Position | Receipt:
        """Where a record that was committed before is now; raises ReceiptExpired."""
        log, position = self.redeem(receipt)
        settled, undecided = self.forest.settled(log)
        if undecided is None or position < settled:
            return position
        return Receipt(log.id, log.generation, position)
