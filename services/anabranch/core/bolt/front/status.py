"""What a sequencer of a lazy front tells clients of the front, and persons of its state."""

from typing import TYPE_CHECKING

from anabranch.core.bolt.front.letters import FrontControl
from anabranch.core.bolt.protocol.fronts import FrontConfiguration
from anabranch.core.sequencing.protocol.messages import Directory, LogSurvey, SequencingStatus
from anabranch.core.sequencing.view import View
from anabranch.core.types import MS, Nanoseconds

if TYPE_CHECKING:
    from anabranch.core.bolt.front.sequencer import FrontSequencer


def durability(configuration: FrontConfiguration | None) -> str:
    """Empty if no configuration is known."""
    if configuration is None:
        return ""
    return "fsync" if configuration.fsync else "memory"


def directory(configuration: FrontConfiguration | None, view: View | None) -> Directory:
    """What this node knows of both. The view may be later than the configuration's."""
    lost = configuration.lost_views if configuration else ()
    return Directory(
        version=configuration.version if configuration else 0,
        view=view.number if view else 0,
        members=view.nodes if view else (),
        leader=view.leader if view else "",
        durability=durability(configuration),
        lost_view=max((number for number, _ in lost), default=0),
    )


def status(sequencer: "FrontSequencer", ring_bytes_max: int) -> SequencingStatus:
    """At the leader. Positions are the front's offsets."""
    replica, configuration = sequencer.replica, sequencer.configuration
    view = replica.view
    assert view is not None, "a leader has a view"
    return SequencingStatus(
        version=configuration.version if configuration else 0,
        view=view.number,
        leader=view.leader,
        members=view.nodes,
        mode="",
        durability=durability(configuration),
        stable=replica.stable,
        tail=replica.tail,
        trimmed=0,
        backlog_records=replica.tail - replica.stable,
        backlog_bytes=replica.ring.bytes,
        ring_bytes_max=ring_bytes_max,
        shards=(),
        views_changed=view.number - 1,
        lost_views=configuration.lost_views if configuration else (),
        append_bytes_per_s=sequencer.pace.bytes_per_s,
        ring_lasts_ms=sequencer.ring_lasts_ms,
        held_up=sequencer.held_up,
    )


def survey(
    sequencer: "FrontSequencer", control: tuple[Nanoseconds, FrontControl] | None, now: Nanoseconds
) -> LogSurvey:
    """What this sequencer knows of the configuration, and of what the controllers do."""
    known = sequencer.configuration or FrontConfiguration()
    view = known.view
    said_at, said = control or (now, _NOBODY)
    assert said_at <= now, "nothing was said in the future"
    return LogSurvey(
        node=sequencer.config.node,
        version=known.version,
        term=known.term,
        view=view.number if view else 0,
        leader=view.leader if view else "",
        members=tuple((each.node, each.life) for each in view.members) if view else (),
        sequencers=known.sequencers,
        mode="",
        durability=durability(sequencer.configuration),
        shards=(),
        lost_views=known.lost_views,
        controller=said.node,
        age_ms=(now - said_at) // MS if control else -1,
        obstacle=said.obstacle,
        changing=said.changing,
        silent=said.silent,
        leaving=said.leaving,
        taking_over=(),
    )


_NOBODY = FrontControl(node="", term=0, obstacle="", changing="", silent=(), leaving=())
"""No controller has said anything."""
