"""The shards of a group, as their pods, their volumes and the log tell of them together."""

from collections.abc import Iterator

from msgspec import Struct

from anabranch_operator.api import names
from anabranch_operator.api.anabranch_names import Nanoseconds
from anabranch_operator.api.common import GroupEngineName
from anabranch_operator.api.conditions import Reason
from anabranch_operator.api.sequencers import Mode
from anabranch_operator.api.shards import WaitFor
from anabranch_operator.plan.engine.objects import Observed, Ref
from anabranch_operator.plan.engine.world import Sequencers, Shards, World
from anabranch_operator.plan.groups.named_pods import Post, claim_of, posts
from anabranch_operator.plan.groups.report import Report, ShardReport, Standing
from anabranch_operator.plan.groups.shard_pod import (
    node,
    number_of,
    pod_names,
    shard_name,
    template,
)
from anabranch_operator.plan.groups.status_polls import current, told, trouble


class Seen(Struct, frozen=True, kw_only=True):
    """One shard."""

    number: int
    name: str
    told: ShardReport | None
    """By the log; None if it doesn't know the shard, or nobody has said."""
    posts: tuple[Post, ...]
    volumes: tuple[Observed, ...]
    wanted: bool
    over: bool
    """Nobody counts on it any more: whatever there is of it may go."""
    current: bool
    """Was the log asked after all that has happened to shards?"""

    @property
    def standing(self) -> Standing | None:
        return None if self.told is None else self.told.standing

    @property
    def seated(self) -> bool:
        return self.standing is Standing.SEATED

    @property
    def barred(self) -> bool:
        """Can nobody come to count on it? One that isn't known, or has failed, may be admitted at
        any time, but not without all of its replicas. Pods of a deleted group of the same name
        serve until they are collected.
        """
        if self.standing is Standing.LEFT:
            return True
        return self.current and any(each.empty for each in self.posts)

    @property
    def whole(self) -> bool:
        """Can one of its replicas be spared? All are there and count; or none counts."""
        if not all(each.ready and not each.going for each in self.posts):
            return False
        if self.told is None or self.told.standing is Standing.FAILED:
            return True
        return not self.told.silent and len(self.told.replicas) == len(self.posts)


class Group(Struct, frozen=True):
    """All of a group's, by number."""

    group: Shards
    log: Sequencers | None
    status: Report | None
    why: str
    """No status: why there is none."""
    shards: tuple[Seen, ...]

    @property
    def mismatch(self) -> str:
        """Why this group can't be of its SequencerSet; empty: all is well."""
        if self.log is None:
            return ""
        if self.log.spec.engine is self.group.spec.engine:
            if self.group.spec.black_box is None or self.log.spec.mode is not Mode.ST:
                return ""
            return (
                f"SequencerSet {self.log.ref.name} has mode st, whose appends would wait for a "
                "blackBox: make another ShardGroup without one"
            )
        return (
            f"SequencerSet {self.log.ref.name} is of engine {self.log.spec.engine}, and this group "
            f"of {self.group.spec.engine}: make another ShardGroup with that engine"
        )

    @property
    def away(self) -> tuple[Reason, str] | None:
        """Why nobody says how the shards are."""
        if self.log is None:
            name = self.group.spec.sequencers
            return Reason.SEQUENCERS_MISSING, f"there is no SequencerSet {name} in this namespace"
        if self.mismatch:
            return Reason.INVALID, self.mismatch
        return (Reason.SEQUENCERS_AWAY, self.why) if self.status is None else None

    @property
    def wanted(self) -> list[Seen]:
        return [each for each in self.shards if each.wanted]

    @property
    def surplus(self) -> list[Seen]:
        return [each for each in self.shards if not each.wanted]

    @property
    def kept(self) -> str:
        """The shard that isn't wanted, and that the log can't do without; empty: there is none."""
        if self.status is None or self.group.spec.engine is GroupEngineName.BELFAST:
            return ""
        seated = [each.name for each in self.status.shards if each.standing is Standing.SEATED]
        here = [each.name for each in self.surplus if each.seated]
        return here[0] if here and set(seated) <= set(here) else ""

    @property
    def posts(self) -> list[Post]:
        return [post for each in self.shards for post in each.posts]

    @property
    def old(self) -> list[Post]:
        return [each for each in self.posts if each.manned and each.outdated]

    def leads(self, shard: Seen, post: Post) -> bool:
        return shard.told is not None and node(self.group, post.name) == shard.told.primary


def look(world: World, group: Shards, now: Nanoseconds) -> Group:
    ref = Ref(names.SEQUENCERS, group.ref.namespace, group.spec.sequencers)
    log, status = world.sequencers.get(ref), told(world, ref)
    found: dict[str, ShardReport] = {}
    if status is not None:
        found = {each.name: each for each in status.shards}
    numbers = dict.fromkeys(range(group.spec.shards))
    numbers |= dict.fromkeys(_there(world, group))
    numbers |= dict.fromkeys(_counting(group, found))
    wanted = template(group.spec)
    fresh = current(world, ref)
    shards: list[Seen] = []
    for number in sorted(numbers):
        name, bearers = shard_name(group.ref.name, number), pod_names(group, number)
        claims = (world.objects.get(claim_of(group.ref.namespace, each)) for each in bearers)
        seen = Seen(
            number=number,
            name=name,
            told=found.get(name),
            posts=posts(world, group.object, bearers, wanted, now),
            volumes=tuple(each for each in claims if each is not None and not each.deleting),
            wanted=number < group.spec.shards,
            over=number >= group.spec.shards and _over(group, status, found.get(name)),
            current=fresh,
        )
        if seen.wanted or not seen.over or any(each.pod for each in seen.posts) or _spent(seen):
            shards.append(seen)
    return Group(group, log, status, trouble(world, ref), tuple(shards))


def _over(group: Shards, status: Report | None, shard: ShardReport | None) -> bool:
    """It has no seat in any window that is open, and what it holds is trimmed or given up."""
    if status is None:
        return False
    if shard is None:
        return True
    if shard.standing not in {Standing.LEFT, Standing.FAILED}:
        return False
    trimmed = status.trimmed >= shard.last
    return trimmed or group.spec.leaving.wait_for is WaitFor.NOTHING


def _spent(seen: Seen) -> bool:
    """Its volumes hold nothing that is of use. Of one that the log doesn't know nobody can say."""
    return seen.over and seen.told is not None and bool(seen.volumes)


def _there(world: World, group: Shards) -> Iterator[int]:
    """Those that have pods or volumes."""
    for kind in ("Pod", "PersistentVolumeClaim"):
        for each in world.of_kind(kind):
            if each.ref.namespace != group.ref.namespace:
                continue
            if each.labels.get(names.SHARDS_LABEL) == group.ref.name:
                number = number_of(group.ref.name, each.labels.get(names.SHARD_LABEL, ""))
                if number is not None:
                    yield number


def _counting(group: Shards, found: dict[str, ShardReport]) -> Iterator[int]:
    """Those that the log counts on."""
    for name, each in found.items():
        number = number_of(group.ref.name, name)
        if number is not None and each.standing is not Standing.LEFT:
            yield number
