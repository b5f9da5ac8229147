"""Explores every interleaving of a small Erwin log: appends, pushes, drops, reads and view changes.

The protocol is that of docs/decisions/0057 and 0058. A view change carries the ring of one sealed
replica over. A push names the base of its view, and a shard that hears of a view for the first time
cuts its list back to that base. Every shard keeps the whole list of ids, so the model has no data.

Records 1 and 2 are one client's: 2 is sent after 1 was acknowledged. Record 3 is another client's.
Clients repeat their appends at will. Letters to shards may be late, repeated or lost. `Broken`
names rules that can be left out, to see that each is needed.
"""

from collections.abc import Iterator
from enum import Enum
from typing import NamedTuple

from tests.models import exploration
from tests.models.exploration import Found

Ids = tuple[int, ...]

REPLICAS = (0, 1)
SHARDS = (0, 1)
PUSHES_AHEAD = 2
"""Pushes that the leader has under way."""


class Broken(Enum):
    """A rule that the model leaves out."""

    FENCE = "a shard takes pushes of earlier views"
    BASE = "a shard isn't cut back to the base of a new view"
    DROPS = "positions are stable before all replicas have dropped their records"
    SHARD = "records are dropped when one shard has them"
    KNOWN = "duplicates aren't carried over"
    LATE = "a drop doesn't make its ids known to the replica"
    SEALED = "a sealed replica still takes appends"


class Replica(NamedTuple):
    view: int
    sealed: bool
    ring: Ids
    known: frozenset[int]
    ordered: int


class Push(NamedTuple):
    view: int
    base: int
    first: int
    ids: Ids


class Shard(NamedTuple):
    view: int
    entries: Ids
    stable: int


class State(NamedTuple):
    view: int
    """The one in the configuration."""
    replicas: tuple[Replica, ...]
    shards: tuple[Shard, ...]
    pushes: frozenset[Push]
    cut: int
    """Records of the leader's ring that are in pushes."""
    base: int
    pushed: Ids
    """By shard: the end of what it is known to hold in this view; the answers may be old."""
    dropped: Ids
    """By replica: the end of what is known to be ordered there in this view."""
    stable: tuple[int, int]
    """The highest stable position that a leader announced, and in which view."""
    acks: frozenset[tuple[int, int, int]]
    """Answers to clients: id, view, replica."""
    acknowledged: frozenset[int]
    prepared: Replica | None
    """The state of the next view, copied from a sealed replica."""
    read: Ids
    """What readers have seen at each position; 0: nothing yet."""


class Bounds(NamedTuple):
    records: Ids = (1, 2, 3)
    views: int = 1


def begin() -> State:
    return State(
        view=0,
        replicas=tuple(Replica(0, False, (), frozenset(), 0) for _ in REPLICAS),
        shards=tuple(Shard(0, (), 0) for _ in SHARDS),
        pushes=frozenset(),
        cut=0,
        base=0,
        pushed=(0,) * len(SHARDS),
        dropped=(0,) * len(REPLICAS),
        stable=(0, 0),
        acks=frozenset(),
        acknowledged=frozenset(),
        prepared=None,
        read=(),
    )


def steps(state: State, bounds: Bounds, broken: Broken | None) -> Iterator[tuple[str, State]]:
    yield from _appends(state, bounds, broken)
    yield from _ordering(state, broken)
    yield from _shards(state, broken)
    yield from _view_changes(state, bounds, broken)


def _appends(state: State, bounds: Bounds, broken: Broken | None) -> Iterator[tuple[str, State]]:
    for id in bounds.records:
        if id == 2 and 1 not in state.acknowledged:
            continue
        for n, replica in enumerate(state.replicas):
            sealed = replica.sealed and broken is not Broken.SEALED
            if sealed or replica.view != state.view or (id, state.view, n) in state.acks:
                continue
            taken = replica
            if id not in replica.known:
                taken = replica._replace(ring=(*replica.ring, id), known=replica.known | {id})
            acks = state.acks | {(id, state.view, n)}
            yield f"append {id} at {n}", _with(state, n, taken)._replace(acks=acks)
        if id not in state.acknowledged and any(
            all((id, view, n) in state.acks for n in REPLICAS) for view in range(state.view + 1)
        ):
            acknowledged = state.acknowledged | {id}
            yield f"acknowledge {id}", state._replace(acknowledged=acknowledged)


def _ordering(state: State, broken: Broken | None) -> Iterator[tuple[str, State]]:
    """Replica 0 leads every view. A sealed leader doesn't know that its view is over."""
    leader = state.replicas[0]
    held = max(state.pushed) if broken is Broken.SHARD else min(state.pushed)
    under_way = sum(
        push.view == state.view and _end(push) > leader.ordered for push in state.pushes
    )
    if under_way < PUSHES_AHEAD:
        for size in (1, 2):
            ids = leader.ring[state.cut : state.cut + size]
            if len(ids) == size:
                push = Push(state.view, state.base, leader.ordered + state.cut, ids)
                after = state._replace(pushes=state.pushes | {push}, cut=state.cut + size)
                yield f"push {push}", after
    for push in state.pushes:
        if push.view != state.view or _end(push) > held:
            continue
        for n, replica in enumerate(state.replicas):
            if replica.sealed or replica.ordered != push.first:
                continue
            known = replica.known if broken is Broken.LATE else replica.known | set(push.ids)
            ring = tuple(id for id in replica.ring if id not in push.ids)
            after = replica._replace(ring=ring, known=known, ordered=_end(push))
            yield (
                f"drop {push.ids} at {n}",
                _with(state, n, after)._replace(
                    cut=state.cut - len(push.ids) if n == 0 else state.cut,
                    dropped=_at(state.dropped, n, _end(push)),
                ),
            )
    stable = held if broken is Broken.DROPS else min(state.dropped)
    stable = max(stable, state.base)
    if stable > state.stable[0]:
        yield f"announce {stable}", state._replace(stable=(stable, state.view))


def _shards(state: State, broken: Broken | None) -> Iterator[tuple[str, State]]:
    for m, shard in enumerate(state.shards):
        for push in state.pushes:
            after = _taken(shard, push, broken)
            pushed = state.pushed
            if after.view == state.view:
                pushed = _at(pushed, m, max(pushed[m], len(after.entries)))
            if after != shard or pushed != state.pushed:
                yield f"{push} at shard {m}", _put(state, m, after)._replace(pushed=pushed)
        stable, view = state.stable
        if shard.view >= view and shard.stable < stable <= len(shard.entries):
            yield f"stable {stable} at shard {m}", _put(state, m, shard._replace(stable=stable))
        for position in range(min(shard.stable, len(shard.entries))):
            seen = state.read + (0,) * (position + 1 - len(state.read))
            if seen[position] == 0:
                yield (
                    f"read {position} at shard {m}",
                    state._replace(read=_at(seen, position, shard.entries[position])),
                )


def _taken(shard: Shard, push: Push, broken: Broken | None) -> Shard:
    if push.view < shard.view and broken is not Broken.FENCE:
        return shard
    if push.view > shard.view:
        to = push.first if broken is Broken.BASE else push.base
        if to > len(shard.entries):
            return shard
        shard = shard._replace(view=push.view, entries=shard.entries[:to])
    if push.first == len(shard.entries):
        return shard._replace(entries=shard.entries + push.ids)
    return shard


def _view_changes(
    state: State, bounds: Bounds, broken: Broken | None
) -> Iterator[tuple[str, State]]:
    if state.view >= bounds.views:
        return
    for n, replica in enumerate(state.replicas):
        if replica.view != state.view:
            continue
        if not replica.sealed:
            yield f"seal {n}", _with(state, n, replica._replace(sealed=True))
            continue
        known = replica.known if broken is not Broken.KNOWN else frozenset(replica.ring)
        copy = Replica(state.view + 1, False, replica.ring, known, replica.ordered)
        if copy != state.prepared:
            yield f"prepare from {n}", state._replace(prepared=copy)
    if state.prepared is not None:
        yield "configure", _configured(state, state.prepared)


def _configured(state: State, member: Replica) -> State:
    return state._replace(
        view=member.view,
        replicas=(member,) * len(REPLICAS),
        cut=0,
        base=member.ordered,
        pushed=(0,) * len(SHARDS),
        dropped=(member.ordered,) * len(REPLICAS),
        prepared=None,
    )


def wrong(state: State) -> str | None:
    for m, shard in enumerate(state.shards):
        if shard.stable > len(shard.entries):
            return f"shard {m} has cut off what was readable"
        readable = shard.entries[: shard.stable]
        if len(set(readable)) != len(readable):
            return "a record has two positions"
        if 2 in readable and (1 not in readable or readable.index(1) > readable.index(2)):
            return "real-time order is broken"
        for position, seen in enumerate(state.read):
            if seen and position < shard.stable and shard.entries[position] != seen:
                return f"position {position} of shard {m} has changed"
    for id in state.acknowledged:
        for replica in state.replicas:
            if replica.view != state.view or id in replica.ring:
                continue
            for shard in state.shards:
                if id not in shard.entries[: replica.ordered]:
                    return f"acknowledged record {id} may be lost"
    return None


def explore(bounds: Bounds, broken: Broken | None = None) -> tuple[int, Found | None]:
    """The number of states, and the shortest way to one that breaks the log's promises."""

    def following(state: State) -> Iterator[tuple[str, State]]:
        for what, after in steps(state, bounds, broken):
            yield what, _forget(after, broken)

    return exploration.explore(begin(), following, wrong)


def _forget(state: State, broken: Broken | None) -> State:
    """Leave out what can't matter any more, so that equal futures are one state. Nor does it matter
    which shard is which: they do the same. So a trace may call one shard by both numbers.
    """
    oldest = 0 if broken is Broken.FENCE else min(shard.view for shard in state.shards)
    acks = frozenset(
        (id, view, n)
        for id, view, n in state.acks
        if id not in state.acknowledged
        and (view == state.view or all((id, view, other) in state.acks for other in REPLICAS))
    )
    pushes = frozenset(push for push in state.pushes if push.view >= oldest)
    both = sorted(zip(state.shards, state.pushed, strict=True))
    shards, pushed = tuple(shard for shard, _ in both), tuple(end for _, end in both)
    return state._replace(acks=acks, pushes=pushes, shards=shards, pushed=pushed)


def _at(values: Ids, index: int, value: int) -> Ids:
    return (*values[:index], value, *values[index + 1 :])


def _with(state: State, n: int, replica: Replica) -> State:
    return state._replace(replicas=(*state.replicas[:n], replica, *state.replicas[n + 1 :]))


def _put(state: State, m: int, shard: Shard) -> State:
    return state._replace(shards=(*state.shards[:m], shard, *state.shards[m + 1 :]))


def _end(push: Push) -> int:
    return push.first + len(push.ids)
