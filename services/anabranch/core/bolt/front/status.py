"""What a sequencer of a lazy front tells clients of the front, and persons of its state."""

from typing import TYPE_CHECKING

from anabranch.core.bolt.protocol.fronts import FrontConfiguration
from anabranch.core.sequencing.messages import Directory, SequencingStatus
from anabranch.core.sequencing.view import View

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
