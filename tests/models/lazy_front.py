"""Every interleaving of a small lazy front: appends, batches, commits, drops, view changes.

The protocol is that of the specification of lazy fronts: the leader of a view is a producer of the
Bolt log, numbers its batches, and drops what is committed; a view change closes the log to earlier
views (`open`), learns which ids it holds, and carries the ring of one sealed replica over. Beside
that: with durability `memory` a replica may lose what it held, and a promotable fork may be opened,
promoted and squashed. While it is undecided, batches are parked, and committed in their order when
it is decided.

Records 1 and 2 are one client's: 2 is sent after 1 was acknowledged. Record 3 is another client's.
Clients repeat their appends at will. Batches may be late, repeated or lost. `Broken` names rules
that can be left out, to see that each is needed.
"""

from collections.abc import Iterator
from enum import Enum
from typing import NamedTuple

from tests.models import exploration
from tests.models.exploration import Found

Ids = tuple[int, ...]

REPLICAS = (0, 1)
BATCHES_AHEAD = 2
"""Batches that the leader has under way."""
FORKED = 9
"""The record that the fork has when it is promoted."""
NEVER_OPENED, UNDECIDED, DECIDED = range(3)


class Broken(Enum):
    """A rule that the model leaves out."""

    FENCE = "the log takes batches of a view before the one it was opened for"
    RELEASE = "the log forgets a batch's ids when one replica has dropped them"
    LIST = "the ring isn't cleared of what the log holds"
    GAP = "the log takes a batch whose predecessor is missing"
    LATE = "a drop doesn't make its ids known to the replica"
    SEALED = "a sealed replica still takes appends"
    LIFE = "a replica that has lost its ring stays a member"
    LOSS = "a view is given up though a member of it is left"
    UNKNOWN = "a client repeats what it sent in a view that was given up"
    PARK = "a batch is committed past the point of an undecided fork"
    PARKED = "what an earlier view has parked is committed in a later one"


class Replica(NamedTuple):
    """A view of -1: it has lost what it held, and is a member of nothing."""

    view: int
    sealed: bool
    ring: Ids
    known: frozenset[int]
    dropped: int
    """Batches of this view."""


class Batch(NamedTuple):
    view: int
    number: int
    ids: Ids


class State(NamedTuple):
    view: int
    """The one in the configuration."""
    replicas: tuple[Replica, ...]
    cut: int
    """Records of the leader's ring that are in batches which aren't dropped yet."""
    number: int
    """Batches that were cut in this view."""
    batches: frozenset[Batch]
    epoch: int
    """The view that the log takes batches of."""
    last: int
    """The number of the last batch that the log has committed in this epoch."""
    log: Ids
    lists: tuple[Batch, ...]
    """Batches whose ids the log keeps, because a replica may still hold them."""
    parked: tuple[Batch, ...]
    fork: int
    point: int
    """Where the fork begins."""
    moved: bool
    """A record has another position than it had."""
    acks: frozenset[tuple[int, int, int]]
    """Answers to clients: id, view, replica."""
    acknowledged: frozenset[int]
    given_up: frozenset[int]
    """Ids that were sent in a view of which no member is left."""
    sent: frozenset[int]
    losses: int
    prepared: Replica | None
    """The state of the next view, copied from a sealed replica."""


class Bounds(NamedTuple):
    records: Ids = (1, 2, 3)
    views: int = 1
    losses: int = 0
    """How often a replica loses what it holds: more than none with `memory`."""
    forks: int = 0


def begin() -> State:
    return State(
        view=0,
        replicas=tuple(Replica(0, False, (), frozenset(), 0) for _ in REPLICAS),
        cut=0,
        number=0,
        batches=frozenset(),
        epoch=0,
        last=0,
        log=(),
        lists=(),
        parked=(),
        fork=NEVER_OPENED,
        point=0,
        moved=False,
        acks=frozenset(),
        acknowledged=frozenset(),
        given_up=frozenset(),
        sent=frozenset(),
        losses=0,
        prepared=None,
    )


def steps(state: State, bounds: Bounds, broken: Broken | None) -> Iterator[tuple[str, State]]:
    yield from _appends(state, bounds, broken)
    yield from _ordering(state, broken)
    yield from _commits(state, broken)
    yield from _forks(state, bounds, broken)
    yield from _losses(state, bounds, broken)
    yield from _view_changes(state, bounds, broken)


def _appends(state: State, bounds: Bounds, broken: Broken | None) -> Iterator[tuple[str, State]]:
    for id in bounds.records:
        if id == 2 and 1 not in state.acknowledged:
            continue
        # Its outcome is unknown for good: the client was told that the view is lost.
        over = id in state.given_up and broken is not Broken.UNKNOWN
        for n, replica in enumerate(state.replicas):
            sealed = replica.sealed and broken is not Broken.SEALED
            answered = (id, state.view, n) in state.acks
            if over or sealed or replica.view != state.view or answered:
                continue
            taken = replica
            if id not in replica.known:
                taken = replica._replace(ring=(*replica.ring, id), known=replica.known | {id})
            yield (
                f"append {id} at {n}",
                _with(state, n, taken)._replace(
                    acks=state.acks | {(id, state.view, n)}, sent=state.sent | {id}
                ),
            )
        if id not in state.acknowledged and any(
            all((id, view, n) in state.acks for n in REPLICAS) for view in range(state.view + 1)
        ):
            yield f"acknowledge {id}", state._replace(acknowledged=state.acknowledged | {id})


def _ordering(state: State, broken: Broken | None) -> Iterator[tuple[str, State]]:
    """Replica 0 leads every view. A sealed leader doesn't know that its view is over."""
    leader = state.replicas[0]
    if leader.view == state.view and state.number - leader.dropped < BATCHES_AHEAD:
        for size in (1, 2):
            ids = leader.ring[state.cut : state.cut + size]
            if len(ids) == size:
                batch = Batch(state.view, state.number + 1, ids)
                yield (
                    f"cut {batch}",
                    state._replace(
                        cut=state.cut + size,
                        number=batch.number,
                        batches=state.batches | {batch},
                    ),
                )
    for n, replica in enumerate(state.replicas):
        if replica.sealed or replica.view != state.view or state.epoch != state.view:
            continue
        number = replica.dropped + 1
        ids = next((b.ids for b in state.batches if b[:2] == (state.view, number)), None)
        if ids is None or state.last < number:
            continue
        known = replica.known if broken is Broken.LATE else replica.known | set(ids)
        ring = tuple(id for id in replica.ring if id not in ids)
        after = replica._replace(ring=ring, known=known, dropped=number)
        cut = state.cut - len(ids) if n == 0 else state.cut
        yield f"drop {ids} at {n}", _with(state, n, after)._replace(cut=cut)


def _commits(state: State, broken: Broken | None) -> Iterator[tuple[str, State]]:
    for batch in state.batches:
        current = batch.view == state.epoch
        if broken is Broken.FENCE and batch.view < state.epoch:
            # A batch of another view fits at any number, and the log knows what it has committed.
            if not set(batch.ids) <= set(state.log):
                yield f"commit {batch}", _committed(state, batch)
            continue
        following = state.last + len(state.parked) + 1
        fits = batch.number == following or (broken is Broken.GAP and batch.number > following)
        if not current or not fits:
            continue
        if state.fork == UNDECIDED and broken is not Broken.PARK:
            yield f"park {batch}", state._replace(parked=(*state.parked, batch))
        else:
            yield f"commit {batch}", _committed(state, batch)
    done = [replica.dropped for replica in state.replicas if replica.view == state.view]
    whole = len(done) == len(REPLICAS)
    upto = max(done, default=0) if broken is Broken.RELEASE else min(done) if whole else 0
    if state.epoch == state.view and whole:
        # Lists of earlier views go with the first release of a view that all began from them.
        kept = tuple(b for b in state.lists if b.view == state.view and b.number > upto)
        if kept != state.lists:
            yield "release", state._replace(lists=kept)


def _committed(state: State, batch: Batch) -> State:
    return state._replace(
        last=max(state.last, batch.number) if batch.view == state.epoch else state.last,
        log=(*state.log, *batch.ids),
        lists=(*state.lists, batch),
    )


def _forks(state: State, bounds: Bounds, broken: Broken | None) -> Iterator[tuple[str, State]]:
    if state.fork == NEVER_OPENED and bounds.forks:
        yield "fork", state._replace(fork=UNDECIDED, point=len(state.log))
    if state.fork != UNDECIDED:
        return
    promoted = (*state.log[: state.point], FORKED, *state.log[state.point :])
    moved = len(state.log) > state.point
    for what, log, changed in (("promote", promoted, moved), ("squash", state.log, False)):
        after = state._replace(fork=DECIDED, log=log, parked=(), moved=changed)
        for batch in state.parked:
            after = _committed(after, batch)
        yield what, after


def _losses(state: State, bounds: Bounds, broken: Broken | None) -> Iterator[tuple[str, State]]:
    """A replica loses all that it held. Its next life is no member."""
    if state.losses >= bounds.losses:
        return
    for n, replica in enumerate(state.replicas):
        if replica.view != state.view:
            continue
        lost = Replica(-1, False, (), frozenset(), 0)
        if broken is Broken.LIFE:
            lost = lost._replace(view=state.view, dropped=replica.dropped)
        cut = 0 if n == 0 else state.cut
        yield f"{n} is lost", _with(state, n, lost)._replace(cut=cut, losses=state.losses + 1)


def _view_changes(
    state: State, bounds: Bounds, broken: Broken | None
) -> Iterator[tuple[str, State]]:
    if state.view >= bounds.views:
        return
    following = state.view + 1
    members = [replica for replica in state.replicas if replica.view == state.view]
    for n, replica in enumerate(state.replicas):
        if replica.view == state.view and not replica.sealed:
            yield f"seal {n}", _with(state, n, replica._replace(sealed=True))
    gone = len(members) < len(REPLICAS) if broken is Broken.LOSS else not members
    sealed = [replica for replica in members if replica.sealed]
    if (sealed or gone) and state.epoch < following:
        parked = state.parked if broken is Broken.PARKED else ()
        yield "open", state._replace(epoch=following, last=0, parked=parked)
    if state.epoch < following:
        return
    listed: frozenset[int] = frozenset(id for batch in state.lists for id in batch.ids)
    committed = frozenset[int]() if broken is Broken.LIST else listed
    for replica in sealed:
        ring = tuple(id for id in replica.ring if id not in committed)
        copy = Replica(following, False, ring, replica.known | committed, 0)
        if copy != state.prepared:
            yield "prepare", state._replace(prepared=copy)
    if state.prepared is not None:
        yield "configure", _configured(state, state.prepared)
    if gone:
        after = _configured(state, Replica(following, False, (), committed, 0))
        if not members:
            after = after._replace(given_up=state.given_up | state.sent)
        yield "give up", after


def _configured(state: State, member: Replica) -> State:
    return state._replace(
        view=member.view,
        replicas=(member,) * len(REPLICAS),
        cut=0,
        number=0,
        prepared=None,
    )


def wrong(state: State) -> str | None:
    if state.moved:
        return "a position that could be read has changed"
    log = state.log
    if len(set(log)) != len(log):
        return "a record is there twice"
    if 2 in log and (log.index(1) > log.index(2) if 1 in log else 1 not in state.given_up):
        return "real-time order is broken"
    members = [replica for replica in state.replicas if replica.view == state.view]
    for id in state.acknowledged - state.given_up - set(log):
        if members and not all(id in replica.ring for replica in members):
            return f"acknowledged record {id} may be lost"
    return None


def explore(bounds: Bounds, broken: Broken | None = None) -> tuple[int, Found | None]:
    """The number of states, and the shortest way to one that breaks the log's promises."""

    def following(state: State) -> Iterator[tuple[str, State]]:
        for what, after in steps(state, bounds, broken):
            yield what, _forget(after, broken)

    return exploration.explore(begin(), following, wrong)


def _forget(state: State, broken: Broken | None) -> State:
    """Leave out what can't matter any more, so that equal futures are one state."""
    floor = 0
    if state.epoch == state.view:
        floor = min((r.dropped for r in state.replicas if r.view == state.view), default=0)
    batches = state.batches
    if broken is not Broken.FENCE:
        batches = frozenset(
            batch
            for batch in batches
            if batch.view == state.epoch and (batch.number > state.last or batch.number > floor)
        )
    acks = frozenset(
        (id, view, n)
        for id, view, n in state.acks
        if id not in state.acknowledged
        and (view == state.view or all((id, view, other) in state.acks for other in REPLICAS))
    )
    return state._replace(acks=acks, batches=batches)


def _with(state: State, n: int, replica: Replica) -> State:
    return state._replace(replicas=(*state.replicas[:n], replica, *state.replicas[n + 1 :]))
