"""What must hold of the replicated state at every instant (spec 9): for tests, simulation, metrics.

`broken` looks at one state; a `Witness` remembers what it saw, for the rules that say "for ever".
B8 and B10 are judged from what clients saw (see `history`), B11 by whoever holds the object store,
B13 by the benchmarks.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence

import msgspec

from anabranch.core.bolt.logs import writers
from anabranch.core.bolt.logs.forest import Log, subtree
from anabranch.core.bolt.logs.index import COLUMNS
from anabranch.core.bolt.logs.lineage import Lineage, Segment, descend, segments
from anabranch.core.bolt.logs.scan_plans import plan_name
from anabranch.core.bolt.protocol.commands import Committed, Sequenced
from anabranch.core.bolt.state.placement import READY
from anabranch.core.bolt.state.replica import Replica
from anabranch.core.bolt.state.retention import referenced
from anabranch.core.bolt.state.scans import compactors
from anabranch.core.records.set_sum import UNKNOWN
from anabranch.core.types import NEVER, Kind, LogId, ObjectId, Position


class Broken(msgspec.Struct, frozen=True):
    """A rule that doesn't hold, and where."""

    rule: str
    log: str
    what: str


def broken(replica: Replica) -> list[Broken]:
    """Every rule that this state breaks; none in a correct one."""
    found: list[Broken] = []
    for rule, holds in RULES.items():
        found.extend(Broken(rule, log, what) for log, what in holds(replica))
    return found


Breach = tuple[str, str]


def _forest(replica: Replica) -> Iterator[Breach]:
    """Parents and children, names and graves, promotable forks and their count agree."""
    forest = replica.forest
    for id, log in forest.logs.items():
        if log.id != id or forest.names.get(log.name) is not log:
            yield log.name, "ids and names disagree"
        if id in forest.graves or id >= replica.next_id:
            yield log.name, "its id is a dead log's, or not yet given"
        if log.parent is not None and log.parent.children.get(id) is not log:
            yield log.name, "its parent doesn't know it"
        if log.depth != (log.parent.depth + 1 if log.parent else 0):
            yield log.name, f"its depth isn't {log.depth}"
        for heir in log.children.values():
            if heir.parent is not log or forest.logs.get(heir.id) is not heir:
                yield log.name, f"{heir.name} is not its fork"
        promotable = [(h.fork_point, h.id) for h in log.children.values() if h.promotable]
        if log.promotable_forks != sorted(promotable):
            yield log.name, "its list of promotable forks is wrong"
    if len(forest.names) != len(forest.logs):
        yield "", "a name without a log"
    if forest.undecided != sum(log.promotable for log in forest.logs.values()):
        yield "", "the count of undecided forks is wrong"


def owners(replica: Replica) -> Iterator[Breach]:
    """An owner leads to its one log, or to one grave if it has none."""
    forest = replica.forest
    owned = {log.owner: log.id for log in forest.logs.values() if log.owner}
    if len(owned) != sum(log.owner != "" for log in forest.logs.values()):
        yield "", "an owner has two logs"
    if {owner: log.id for owner, log in forest.owned.items()} != owned:
        yield "", "owners and their logs disagree"
    for id, grave in forest.graves.items():
        if grave.owner and (grave.owner in owned or forest.graves_by_owner[grave.owner] != id):
            yield grave.name, f"{grave.owner} has another log, or another grave"
    if len(forest.graves_by_owner) != sum(grave.owner != "" for grave in forest.graves.values()):
        yield "", "an owner leads to a grave that isn't its own"


def _indexes(replica: Replica) -> Iterator[Breach]:
    """Extents in order, without overlap, below the tail, each column as long as the others."""
    for log in replica.forest.logs.values():
        index, tail = log.index, replica.forest.tail(log)
        if len({len(getattr(index, column)) for column in COLUMNS}) != 1:
            yield log.name, "its columns differ in length"
            continue
        end = log.own_from if log.kind is Kind.SEVERED or log.parent is None else log.fork_point
        upto = index.forgotten
        for extent in range(len(index)):
            if index.first[extent] < end or index.upto[extent] <= upto:
                yield log.name, f"extent {extent} overlaps or is empty"
            end, upto = index.end(extent), index.upto[extent]
        if end > max(tail, log.own_from):
            yield log.name, f"it holds position {end - 1}, and its tail is {tail}"


def b1_prefix(replica: Replica) -> Iterator[Breach]:
    """Below its fork point a fork is what its parent is."""
    for log in replica.forest.logs.values():
        start = max(log.start, log.parent.start) if log.parent else NEVER
        if log.parent is not None and start < log.own_from:
            mine = segments(log, start, log.own_from)
            if mine != segments(log.parent, start, log.own_from):
                yield log.name, f"it isn't {log.parent.name} below {log.own_from}"


def b3_density(replica: Replica) -> Iterator[Breach]:
    """Every readable position has exactly one entry; the flattened look-up finds the same one."""
    forest = replica.forest
    for log in forest.logs.values():
        tail = forest.tail(log)
        if not 0 <= log.start <= tail:
            yield log.name, f"it starts at {log.start} and ends at {tail}"
            continue
        flat = joined(segments(log, log.start, tail))
        if flat and flat[0][0] != log.start:
            yield log.name, "its first position has no entry"
        for first, end, owner, shift in _pieces(flat, tail):
            yield from _found_in(log, first, end, owner, shift)
        cached = log.lineage
        if isinstance(cached, Lineage) and cached.reshaped == log.family.reshaped:
            covered = joined(segments(log, cached.start, cached.upto)) if _kept(log, cached) else []
            known = list(zip(cached.starts, cached.owners, cached.shifts, strict=True))
            if covered and known != covered:
                yield log.name, "its cached lineage is not its lineage"


def _found_in(log: Log, first: Position, end: Position, owner: Log, shift: int) -> Iterator[Breach]:
    assert first < end, "a piece has a position at least"
    position = first
    while position < end:
        holder, there, reach = descend(log, position)
        if holder is not owner or there != position - shift or reach < 1:
            yield log.name, f"position {position} is found in {holder.name} and {owner.name}"
            return
        position += reach


def _kept(log: Log, lineage: Lineage) -> bool:
    """What was trimmed since the lineage was cached can't be looked up again."""
    return lineage.start == log.start


def b4_inheritance(replica: Replica) -> Iterator[Breach]:
    """A continuous fork without its own records is its parent, up to the parent's tail."""
    forest = replica.forest
    for log in forest.logs.values():
        parent = log.parent
        if parent is None or log.kind is not Kind.CONTINUOUS:
            continue
        tail = forest.tail(log)
        start = max(log.start, log.fork_point)
        inherited: list[Segment] = []
        flat = segments(log, start, tail)
        for first, end, owner, shift in _pieces(flat, tail):
            if owner is not log:
                own = log.index.count_before(first)
                inherited.append((first - own, owner, shift - own))
                tail_there = end - own
                if tail_there > forest.tail(parent):
                    yield log.name, f"it inherits past the tail of {parent.name}"
        began = start - log.index.count_before(start)
        if began >= parent.start:
            above = segments(parent, began, forest.tail(parent))
            if joined(inherited) != joined(above):
                yield log.name, f"what it inherits isn't what {parent.name} holds"


def b5_one_entry(replica: Replica) -> Iterator[Breach]:
    """A log's own record has its entry there and nowhere else, but for what orphans copied."""
    seen: dict[tuple[int, int], list[tuple[int, int, str]]] = {}
    for log in replica.forest.logs.values():
        index = log.index
        for extent in range(len(index)):
            if index.first[extent] >= log.fork_point:
                place = (index.object[extent], index.offset[extent])
                if place in seen:
                    yield log.name, f"{place} is also in {seen[place][0][2]}"
                seen[place] = [(extent, index.first[extent], log.name)]


def b6_tails(replica: Replica) -> Iterator[Breach]:
    """Local records and inherited ones make the tail; promotable forks the block counts (6.2)."""
    forest = replica.forest
    for log in forest.logs.values():
        tail = forest.tail(log)
        if log.kind is Kind.CONTINUOUS and log.parent is not None:
            expected = forest.tail(log.parent) + log.index.records
        elif log.kind is Kind.ROOT:
            expected = log.index.records
        else:
            expected = max((log.index.end(len(log.index) - 1),) if len(log.index) else (tail,))
            expected = max(expected, log.fork_point)
        if tail != expected:
            yield log.name, f"its tail is {tail}, its records make {expected}"
        if forest.tails.block(log.place) != _blocks(log):
            yield log.name, f"its block count is {forest.tails.block(log.place)}"
    for log in forest.logs.values():
        if log.kind is not Kind.CONTINUOUS and forest.tails.check(log.place) != len(subtree(log)):
            yield log.name, "its tour doesn't hold its subtree"


def _blocks(log: Log) -> int:
    count = 0
    while log.kind is Kind.CONTINUOUS and log.parent is not None:
        count += not log.promotable and bool(log.parent.promotable_forks)
        log = log.parent
    return count


def references(replica: Replica) -> Iterator[Breach]:
    """An object is counted once for each extent that names it, garbage when none does (spec D6)."""
    counted = Counter[ObjectId]()
    for log in replica.forest.logs.values():
        counted.update(ObjectId(object) for object in log.index.object)
    for object, extents in counted.items():
        if replica.references.counts.get(object, 1) != extents:
            yield "", f"object {object:x} is in {extents} extents"
        if object in replica.references.garbage:
            yield "", f"object {object:x} is garbage, and in use"
    for object in replica.references.counts:
        if object not in counted:
            yield "", f"object {object:x} is counted, and in no extent"


def plans(replica: Replica) -> Iterator[Breach]:
    """Scan plans are in the order of their times, and what is measured is garbage, or in use."""
    live = [each.plan for each in replica.plans.live.values()]
    if [plan.began for plan in live] != sorted(plan.began for plan in live):
        yield "", "scan plans aren't in the order in which they were made"
    for plan in live:
        if not 0 <= plan.start <= plan.end or plan.began > min(replica.at, plan.expires):
            yield plan.name, f"scan plan {plan_name(plan.id)} has an impossible range or time"
    if len(live) > replica.limits.plans_max:
        yield "", f"there are {len(live)} scan plans"
    references = replica.references
    used = referenced(replica) if references.sizes else set[int]()
    for object in references.sizes:
        if object not in references.garbage and object not in used:
            yield "", f"object {object:x} is measured, and neither garbage nor in use"


def expiry(replica: Replica) -> Iterator[Breach]:
    """Every fork with a time to live will be looked at when it ends (spec D7)."""
    waiting = set(replica.expiring)
    for log in replica.forest.logs.values():
        if log.expires_at is not None and (log.expires_at, log.id) not in waiting:
            yield log.name, "nobody waits for its time to live"


def cursors(replica: Replica) -> Iterator[Breach]:
    """Every cursor lies where nothing ever moves, so that it is before the same record for ever."""
    for log in replica.forest.logs.values():
        settled = replica.forest.settled(log)[0]
        for name, position in log.cursors.items():
            if not 0 <= position <= settled:
                yield log.name, f"cursor {name} is at {position}, and settled is {settled}"
        if not log.on_promote.keys() <= log.cursors.keys():
            yield log.name, "it knows what a cursor does on a promotion that it doesn't have"


def placement(replica: Replica) -> Iterator[Breach]:
    """R3: whoever is ready serves; forks are apart from roots, and exclusive ones alone, if there
    is a choice.
    """
    placed = replica.placement
    ready = {seat.name for seat in placed.seats.values() if seat.state == READY}
    mixed = {name for name in placed.roots.values() if name}
    free = ready - mixed - set(placed.alone.values())
    idle = free - set(placed.trees.values())
    for served in (placed.roots, placed.trees, placed.alone):
        for log, name in served.items():
            if (name in ready) != bool(ready):
                yield str(log), f"it is served by {name or 'nobody'}, which isn't ready"
    for tree, name in placed.trees.items():
        if name in mixed and free:
            yield str(tree), f"its forks are with roots on {name}"
    for fork, name in placed.alone.items():
        if idle and name in ready and placed.seats[name].load > 1:
            yield str(fork), f"it isn't alone on {name}"


def engines(replica: Replica) -> Iterator[Breach]:
    """A log of another engine is known as such, and has nothing here but its name."""
    forest = replica.forest
    foreign = {id for id, log in forest.logs.items() if log.engine}
    if foreign != forest.foreign.keys():
        yield "", "the logs of other engines aren't all known"
    for log in forest.foreign.values():
        if log.settings is None:
            yield log.name, "nobody knows how its engine serves it"
        if len(log.index) or log.children or log.cursors or log.producers:
            yield log.name, "it has records, forks, cursors or producers here"
        if log.kind is not Kind.ROOT or log.id in replica.placement.roots:
            yield log.name, "it is a fork, or a broker serves it"


def fronts(replica: Replica) -> Iterator[Breach]:
    """What came through a front is numbered without a gap, and the ids of its last batches too."""
    forest = replica.forest
    fronted = {
        id for id, log in forest.logs.items() if log.front is not None and not log.front.ended
    }
    if fronted != forest.fronts.keys():
        yield "", "the logs with a front aren't all known"
    for log in forest.fronts.values():
        front = log.front
        if front is None or log.engine:
            yield log.name, "it has no front, or is another engine's"
            continue
        end = front.lists[0].first if front.lists else front.records
        for listed in front.lists:
            if listed.first != end or listed.upto <= listed.first:
                yield log.name, f"its list of ids at offset {listed.first} doesn't follow {end}"
            end = listed.upto
        if end != front.records:
            yield log.name, f"its ids end at offset {end}, and its records at {front.records}"
        ids = [id for id, _ in front.ids()]
        if len(set(ids)) != len(ids):
            yield log.name, "an append came through its front twice"
        since = [era.since for era in front.eras]
        if since != sorted(set(since)) or any(each >= front.records for each in since):
            yield log.name, "its eras aren't in order"
        for era in front.eras:
            if era.since + era.shift > forest.tail(log) or era.generation > log.generation:
                yield log.name, f"its era from offset {era.since} lies beyond the log"


RULES: dict[str, Callable[[Replica], Iterator[Breach]]] = {
    "forest": _forest,
    "index": _indexes,
    "B1": b1_prefix,
    "B3": b3_density,
    "B4": b4_inheritance,
    "B5": b5_one_entry,
    "B6": b6_tails,
    "D6": references,
    "D7": expiry,
    "R3": placement,
    "cursors": cursors,
    "plans": plans,
    "compactors": compactors.breaches,
    "owners": owners,
    "engines": engines,
    "fronts": fronts,
    "writers": writers.unsound,
}


def joined(flat: list[Segment]) -> list[Segment]:
    """Neighbouring segments of one holder and one shift as one."""
    found: list[Segment] = []
    for segment in flat:
        if not found or found[-1][1:] != segment[1:]:
            found.append(segment)
    return found


def _pieces(flat: list[Segment], tail: Position) -> Iterator[tuple[Position, Position, Log, int]]:
    ends = [*(first for first, _, _ in flat[1:]), tail]
    for (first, owner, shift), end in zip(flat, ends, strict=False):
        yield first, end, owner, shift


def held(replica: Replica, command_rows: list[LogId], outcome: Committed) -> list[Broken]:
    """B9: no position is told while a promotion might still move it."""
    found: list[Broken] = []
    for id, row in zip(command_rows, outcome.rows, strict=True):
        log = replica.forest.logs.get(id)
        told = row.batches if isinstance(row, Sequenced) else [row]
        positions = [each for each in told if isinstance(each, int)]
        if log is None or not positions:
            continue
        settled = replica.forest.settled(log)[0]
        tail = replica.forest.tail(log)
        if max(positions) >= settled and max(positions) < tail:
            found.append(Broken("B9", log.name, f"{max(positions)} told, {settled} settled"))
    return found


Batches = Callable[[ObjectId, int, int], Sequence[tuple[int, Hashable]]]
"""What the bytes of an extent (object, offset, length) are, batch by batch: records, and whatever
tells this batch from all others wherever it is stored.
"""

Run = tuple[Position, int, Hashable, int]
"""(first position, records, what they are of, records of that before them)."""


def wrong_sums(replica: Replica, set_sum: Callable[[ObjectId, int, int], int]) -> list[Broken]:
    """D78: a set sum that is kept is that of the batches that the extent's bytes hold."""
    found: list[Broken] = []
    for log in replica.forest.logs.values():
        index = log.index
        for extent, total in enumerate(index.sum):
            place = ObjectId(index.object[extent]), index.offset[extent], index.length[extent]
            if total not in (UNKNOWN, set_sum(*place)):
                what = f"the set sum of its extent at {index.first[extent]} isn't its batches'"
                found.append(Broken("D78", log.name, what))
    return found


class Witness:
    """B1 and B2: what was settled once, is read the same for ever, also where extents were
    rewritten: there `batches` must tell what a place holds.
    """

    def __init__(self, batches: Batches | None = None) -> None:
        self._batches = batches or _unread
        self._seen: dict[LogId, list[Run]] = {}

    def look(self, replica: Replica) -> list[Broken]:
        found: list[Broken] = []
        seen: dict[LogId, list[Run]] = {}
        for id, log in replica.forest.logs.items():
            settled = replica.forest.settled(log)[0]
            seen[id] = runs(log, log.start, settled, self._batches)
            before = self._seen.get(id, [])
            if before and _from(before, log.start) != _upto(seen[id], before[-1]):
                found.append(Broken("B2", log.name, "a settled position changed"))
        self._seen = seen
        return found


def _unread(object: ObjectId, offset: int, length: int) -> list[tuple[int, Hashable]]:
    """Where nothing is rewritten, a place is as good as what it holds."""
    return [(NEVER, (object, offset))]


def runs(log: Log, start: Position, end: Position, batches: Batches = _unread) -> list[Run]:
    """Which batches hold these positions, found by descending level by level, without the cache."""
    assert start >= 0
    found: list[Run] = []
    while start < end:
        owner, there, reach = descend(log, start)
        index = owner.index
        extent = index.at_or_before(there)
        count = min(reach, end - start)
        skip = there - index.first[extent] + index.skip(extent)
        place = ObjectId(index.object[extent]), index.offset[extent], index.length[extent]
        for records, batch in batches(*place):
            taken = max(0, min(count, records - skip))
            if taken:
                _add(found, (start, taken, batch, skip))
                start, count = start + taken, count - taken
            skip = max(0, skip - records)
        assert not count, "an extent holds the records that it names"
    return found


def _add(found: list[Run], run: Run) -> None:
    """Two that go on with the same batch are one, wherever an extent ends."""
    assert run[1] > 0, "a run has a record at least"
    _, count, batch, skip = run
    if found and found[-1][2:] == (batch, skip - found[-1][1]):
        last = found[-1]
        found[-1] = (last[0], last[1] + count, last[2], last[3])
    else:
        found.append(run)


def _from(runs: list[Run], start: Position) -> list[Run]:
    """What of these runs lies at or after a position: trim may have raised a log's start since."""
    found: list[Run] = []
    for first, count, batch, skip in runs:
        gone = max(0, start - first)
        if gone < count:
            found.append((first + gone, count - gone, batch, skip + gone))
    return found


def _upto(runs: list[Run], last: Run) -> list[Run]:
    """What of these runs lies before the end of another."""
    assert last[1] > 0, "a run has a record at least"
    end = last[0] + last[1]
    return [
        (first, min(count, end - first), batch, skip)
        for first, count, batch, skip in runs
        if first < end
    ]
