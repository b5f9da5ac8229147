"""The sequencers of a set, as their pods and the log tell of them together."""

from msgspec import Struct

from anabranch_operator.api.anabranch_names import Nanoseconds
from anabranch_operator.plan.engine.world import Sequencers, World
from anabranch_operator.plan.groups.named_pods import Post, posts
from anabranch_operator.plan.groups.report import Report
from anabranch_operator.plan.groups.sequencer_pod import node, pod_names, template
from anabranch_operator.plan.groups.status_polls import told, trouble


class Sight(Struct, frozen=True):
    """What was seen of a group."""

    group: Sequencers
    posts: tuple[Post, ...]
    status: Report | None
    why: str
    """No status: why there is none."""

    @property
    def leader(self) -> Post | None:
        return next((each for each in self.posts if self.leads(each)), None)

    @property
    def reached(self) -> int:
        return sum(map(self.reaches, self.posts))

    @property
    def old(self) -> list[Post]:
        return [each for each in self.posts if each.manned and each.outdated]

    def leads(self, post: Post) -> bool:
        return self.status is not None and node(self.group, post.name) == self.status.leader

    def reaches(self, post: Post) -> bool:
        """Does this sequencer count towards what is acknowledged now?"""
        return self.status is not None and node(self.group, post.name) in self.status.reached


def look(world: World, group: Sequencers, now: Nanoseconds) -> Sight:
    found = posts(world, group.object, pod_names(group), template(group.spec), now)
    return Sight(group, found, told(world, group.ref), trouble(world, group.ref))


def spares(sight: Sight, name: str) -> bool:
    """Can the pod of this name go? All others are there, and the leader can reach them; nobody else
    was told to go before it.
    """
    others = [each for each in sight.posts if each.name != name]
    return all(each.ready and sight.reaches(each) and not each.going for each in others)
