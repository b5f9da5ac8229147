"""The Belfast logs of an installation, as their leaders tell of them every few seconds."""

from collections.abc import Collection, Iterator

from msgspec.structs import replace

from anabranch.core.belfast.ledger import Standing
from anabranch.core.belfast.messages import Status
from anabranch_operator.plan.events import Visit, Visited
from anabranch_operator.plan.objects import Ref
from anabranch_operator.plan.sequencing import url
from anabranch_operator.plan.world import World


class Visits:
    """One at a time of each log; what is said of an earlier life of it is said of nobody."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._on_their_way: dict[Ref, None] = {}

    def forget(self) -> None:
        """Another may lead, and answers come to nobody."""
        self._on_their_way.clear()
        self._world.visits.clear()

    def due(self) -> Iterator[Visit]:
        for ref, each in self._world.sequencers.items():
            if ref not in self._on_their_way and not each.object.deleting:
                self._on_their_way[ref] = None
                yield Visit(ref, each.object.uid, url(each))

    def take(self, visited: Visited) -> Iterator[Ref]:
        """Whose plans it may change."""
        ref, world = visited.ref, self._world
        self._on_their_way.pop(ref, None)
        known = world.sequencers.get(ref)
        if known is None or known.object.uid != visited.uid:
            return
        before = world.visits.get(ref)
        world.visits[ref] = visited
        if before != visited:
            yield ref
            yield from (each.ref for each in world.shards_of(ref))


def told(world: World, ref: Ref) -> Status | None:
    """What the log says of itself; None if nobody does."""
    found = world.visits.get(ref)
    return None if found is None else found.status


def trouble(world: World, ref: Ref) -> str:
    """Why nobody does."""
    found = world.visits.get(ref)
    return "it wasn't asked yet" if found is None else found.why


def unheard(world: World, ref: Ref) -> bool:
    """Was it asked, and has yet to answer for the first time? Who has just begun to lead knows less
    of it than what is written.
    """
    known = world.sequencers.get(ref)
    return known is not None and not known.object.deleting and ref not in world.visits


def moved(
    world: World, ref: Ref, shard: str, before: Collection[Standing], standing: Standing
) -> None:
    """A shard that stood like one of these was asked to move: so it stands like this."""
    found = world.visits.get(ref)
    if found is not None and found.status is not None:
        shards = tuple(
            replace(each, standing=standing)
            if each.name == shard and each.standing in before
            else each
            for each in found.status.shards
        )
        world.visits[ref] = replace(found, status=replace(found.status, shards=shards))
