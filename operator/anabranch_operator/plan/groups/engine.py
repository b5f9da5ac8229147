"""What an engine decides about its SequencerSets and ShardGroups; all else is the same for all."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from anabranch_operator.api.conditions import Reason
from anabranch_operator.api.sequencers import SequencerSetStatus
from anabranch_operator.plan.engine.status import Said
from anabranch_operator.plan.engine.world import Sequencers, Shards
from anabranch_operator.plan.groups.report import Report, Standing
from anabranch_operator.plan.groups.sequencer_members import Sight
from anabranch_operator.plan.groups.shard_members import Group
from anabranch_operator.plan.manifests.pod_parts import Mounted

Settings = dict[str, str]
"""Of a pod's process, by their names without the prefix `ANABRANCH_`."""
Flaw = tuple[Reason, str]
"""Something that isn't as it should be, for programs and for people."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupEngine:
    """Data and functions: an engine has no state here."""

    sequencer_settings: Callable[[Sequencers], Settings]
    """Beside those that tell a sequencer who it is and where the others are."""
    sequencer_volumes: Callable[[Sequencers], Iterator[Mounted]] = lambda _: iter(())
    """What a sequencer has beside its data and what the set's spec asks for."""
    waits: Callable[[Sequencers], Flaw | None] = lambda _: None
    """Why no pod of a set can be made yet."""
    shard_settings: Callable[[Shards, int], Settings]
    """Of the pods of the shard with this number."""
    sequencer_status: Callable[[SequencerSetStatus, Report], SequencerSetStatus]
    """What the engine adds to the status of a set."""
    sequencer_conditions: Callable[[Sight], Iterator[Said]]
    """What the engine adds to the conditions of a set."""
    shard_conditions: Callable[[Group], Iterator[Said]]
    """What the engine adds to the conditions of a group."""
    obstacle: Callable[[Report], Flaw | None]
    """Why a log whose sequencers answer isn't ready."""
    flaws: Callable[[Report], Iterator[Flaw]]
    """What isn't as it should be, though appends may be taken."""
    unreached: str
    """How it is that a sequencer that runs doesn't count; its name follows."""
    joins: str
    """What a shard that is wanted waits for."""
    leaves: str
    """How a shard goes on that is about to leave."""
    leaving_reason: Reason
    returns: tuple[Standing, ...]
    """A shard that is wanted again is asked back from these."""
