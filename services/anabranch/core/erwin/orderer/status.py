"""What a sequencer tells clients of the log, and persons of its state."""

from collections.abc import Iterator
from typing import Final

from anabranch.core.erwin.orderer.pushing import Pushing
from anabranch.core.erwin.orderer.shard_cursor import ShardCursor
from anabranch.core.erwin.protocol.directory import durability
from anabranch.core.erwin.protocol.letters import Configuration, Control, ShardSetup
from anabranch.core.sequencing.protocol.messages import (
    LogSurvey,
    SequencingStatus,
    ShardPlace,
    ShardProgress,
)
from anabranch.core.sequencing.replica import SequencingReplica
from anabranch.core.types import MS, Nanoseconds

NOBODY: Final = Control(
    node="", term=0, obstacle="", changing="", silent=(), leaving=(), taking_over=()
)
"""No controller has said anything."""


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
        held_up="; ".join(_obstacles(pushing)),
    )


def _obstacles(pushing: Pushing) -> Iterator[str]:
    """Nothing becomes stable before every shard has written it."""
    for _, cursor in sorted(pushing.cursors.items()):
        if cursor.last is not None and cursor.last.obstacle:
            yield f"{cursor.setup.name}: {cursor.last.obstacle}"


def survey(
    node: str,
    configuration: Configuration | None,
    control: tuple[Nanoseconds, Control] | None,
    now: Nanoseconds,
) -> LogSurvey:
    """What this sequencer knows of the configuration, and of what the controllers do."""
    view = configuration.view if configuration else None
    said_at, said = control or (now, NOBODY)
    assert said_at <= now, "nothing was said in the future"
    return LogSurvey(
        node=node,
        version=configuration.version if configuration else 0,
        term=configuration.term if configuration else 0,
        view=view.number if view else 0,
        leader=view.leader if view else "",
        members=tuple((each.node, each.life) for each in view.members) if view else (),
        sequencers=configuration.sequencers if configuration else (),
        mode=configuration.mode if configuration else "",
        durability=durability(configuration),
        shards=tuple(map(_place, configuration.shards)) if configuration else (),
        lost_views=configuration.lost_views if configuration else (),
        controller=said.node,
        age_ms=(now - said_at) // MS if control else -1,
        obstacle=said.obstacle,
        changing=said.changing,
        silent=said.silent,
        leaving=said.leaving,
        taking_over=said.taking_over,
    )


def _place(setup: ShardSetup) -> ShardPlace:
    return ShardPlace(
        number=setup.number,
        name=setup.name,
        nodes=setup.nodes,
        epoch=setup.epoch,
        primary=setup.primary,
        replicas=setup.replicas,
        open=setup.open,
        removed=setup.removed,
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
