"""The logs of SequencerSets, as their leaders tell of them every few seconds."""

from collections.abc import Collection, Iterator

from msgspec.structs import replace

from anabranch_operator.plan.engine.events import Visit, Visited
from anabranch_operator.plan.engine.objects import Ref
from anabranch_operator.plan.engine.world import Sequencers, World
from anabranch_operator.plan.groups.report import Report, Standing
from anabranch_operator.plan.groups.sequencer_pod import pod_names, url


class Visits:
    """One at a time of each log; what is said of an earlier life of it is said of nobody."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._on_their_way: dict[Ref, int] = {}
        """After how many deeds they began."""
        self._heard: dict[str, tuple[int, int]] = {}
        """The latest age of each log, by its UID."""

    def forget(self) -> None:
        """Another may lead, and answers come to nobody."""
        self._on_their_way.clear()
        self._heard.clear()
        self._world.visits.clear()
        self._world.since.clear()

    def due(self) -> Iterator[Visit]:
        for ref, each in self._world.sequencers.items():
            waits = ref in self._on_their_way or _outlived(self._world, each)
            if not waits and not each.object.deleting:
                self._on_their_way[ref] = self._world.deeds
                yield Visit(ref, each.object.uid, url(each), each.spec.engine)

    def take(self, visited: Visited) -> Iterator[Ref]:
        """Whose plans it may change."""
        ref, world = visited.ref, self._world
        began = self._on_their_way.pop(ref, world.deeds)
        known = world.sequencers.get(ref)
        if known is None or known.object.uid != visited.uid:
            return
        if began < world.since.get(ref, 0):
            return  # a shard was moved since, and this may be from before that
        visited = self._checked(visited, known.spec.members)
        before = world.visits.get(ref), world.since.get(ref)
        world.visits[ref], world.since[ref] = visited, began
        if before != (visited, began):
            yield ref
            yield from (each.ref for each in world.shards_of(ref))

    def _checked(self, visited: Visited, members: int) -> Visited:
        """Who was deposed and hasn't heard of it says how the log was. One that is alone may have
        lost its disk, and begun anew.
        """
        told = visited.report
        if told is None:
            return visited
        before, now = self._heard.get(visited.uid, (0, 0)), told.age
        if now < before and members > 1:
            why = (
                f"{told.leader} answered with an older state than before: it may have been deposed"
            )
            return Visited(visited.ref, visited.uid, why=why)
        self._heard[visited.uid] = now
        return visited


def _outlived(world: World, group: Sequencers) -> bool:
    """Do pods of an earlier set of the name still answer to it? They tell of another log."""
    own = {pod.ref.name for pod in world.children(group.object.uid, "Pod")}
    others = (name for name in pod_names(group) if name not in own)
    return any(world.objects.get(Ref("Pod", group.ref.namespace, name)) for name in others)


def told(world: World, ref: Ref) -> Report | None:
    """What the log says of itself; None if nobody does."""
    found = world.visits.get(ref)
    return None if found is None else found.report


def trouble(world: World, ref: Ref) -> str:
    """Why nobody does."""
    found = world.visits.get(ref)
    return "the sequencers haven't been asked yet" if found is None else found.why


def current(world: World, ref: Ref) -> bool:
    """Does what it says hold for all that has happened to its shards?"""
    return world.since.get(ref) == world.deeds


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
    if found is not None and found.report is not None:
        shards = tuple(
            replace(each, standing=standing)
            if each.name == shard and each.standing in before
            else each
            for each in found.report.shards
        )
        world.visits[ref] = replace(found, report=replace(found.report, shards=shards))
        world.deeds += 1
        world.since[ref] = world.deeds
