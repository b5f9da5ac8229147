"""What a sequencer tells clients of the log, and persons of its state."""

from anabranch.core.erwin.orderer.pushing import Pushing
from anabranch.core.erwin.orderer.shard_cursor import ShardCursor
from anabranch.core.erwin.protocol.letters import Configuration
from anabranch.core.sequencing.messages import (
    Directory,
    SequencingStatus,
    Shard,
    ShardProgress,
)
from anabranch.core.sequencing.replica import SequencingReplica
from anabranch.core.sequencing.view import View


def durability(configuration: Configuration | None) -> str:
    """Empty if no configuration is known."""
    if configuration is None:
        return ""
    return "fsync" if configuration.fsync else "memory"


def directory(configuration: Configuration | None, view: View | None) -> Directory:
    """What this node knows of both. The view may be later than the configuration's."""
    lost = configuration.lost_views if configuration else ()
    return Directory(
        version=configuration.version if configuration else 0,
        view=view.number if view else 0,
        members=view.nodes if view else (),
        leader=view.leader if view else "",
        shards=_shards(configuration) if configuration else (),
        mode=configuration.mode if configuration else "",
        durability=durability(configuration),
        lost_view=max((number for number, _ in lost), default=0),
    )


def _shards(configuration: Configuration) -> tuple[Shard, ...]:
    """Those that clients can ask: their replicas were all there once."""
    return tuple(
        Shard(
            name=setup.name,
            primary=setup.primary,
            replicas=setup.replicas,
            open=setup.open,
            epoch=setup.epoch,
        )
        for setup in configuration.shards
        if setup.epoch > 0 and not setup.removed
    )


class Directories:
    """The same Directory for everybody who asks, until one of its parts has changed."""

    def __init__(self) -> None:
        self._made_of: tuple[Configuration | None, View | None] = None, None
        self._last = directory(None, None)

    def of(self, configuration: Configuration | None, view: View | None) -> Directory:
        if self._made_of[0] is not configuration or self._made_of[1] is not view:
            self._made_of = configuration, view
            self._last = directory(configuration, view)
        return self._last


def status(
    pushing: Pushing,
    replica: SequencingReplica,
    configuration: Configuration | None,
    *,
    ring_bytes_max: int,
) -> SequencingStatus:
    """Only the leader knows what shards hold, and what is stable."""
    view = replica.view
    assert view is not None, "a leader has a view"
    assert replica.stable <= replica.ordered <= replica.tail
    return SequencingStatus(
        version=configuration.version if configuration else 0,
        view=view.number,
        leader=view.leader,
        members=view.nodes,
        mode=configuration.mode if configuration else "",
        durability=durability(configuration),
        stable=replica.stable,
        tail=replica.tail,
        trimmed=pushing.trim,
        backlog_records=replica.tail - replica.stable,
        backlog_bytes=replica.ring.bytes,
        ring_bytes_max=ring_bytes_max,
        shards=tuple(_progress(pushing.cursors[number]) for number in sorted(pushing.cursors)),
        views_changed=view.number - 1,
        lost_views=configuration.lost_views if configuration else (),
    )


def _progress(cursor: ShardCursor) -> ShardProgress:
    setup, last = cursor.setup, cursor.last
    return ShardProgress(
        name=setup.name,
        primary=setup.primary,
        replicas=setup.replicas,
        epoch=setup.epoch,
        upto=cursor.held,
        records=last.records if last else 0,
        noops=last.noops if last else 0,
        reads=last.reads if last else 0,
        slow_reads=last.slow_reads if last else 0,
        orphans=last.orphans if last else 0,
    )
