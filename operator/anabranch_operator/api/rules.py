"""What a schema can't say, in CEL: what goes together, and what can't be changed any more.

Each message tells what to do instead. An object from before a rule can still be told about, let
go and changed elsewhere: what wasn't changed isn't judged again.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from anabranch_operator.api import names
from anabranch_operator.api.fork import At, ForkSpec, Promotion
from anabranch_operator.api.log import LogSequencers, LogShards, LogSpec
from anabranch_operator.api.pool import DiskCache, PoolSpec
from anabranch_operator.api.sequencers import Ordering, SequencerSetSpec, SequencerTemplate
from anabranch_operator.api.shards import ShardGroupSpec, ShardTemplate
from anabranch_operator.api.storage import Storage, VolumeClaim


@dataclass(frozen=True, slots=True)
class Rule:
    """True where all is well."""

    rule: str
    message: str
    field: str = ""
    """Which of the fields is to blame."""
    once: bool = False
    """Only what is made is judged, not what changes: for rules on whole resources, which change
    whenever somebody lets go of a finalizer.
    """

    def written(self) -> dict[str, Any]:
        where = {"fieldPath": f".{self.field}"} if self.field else {}
        if not self.once:
            return {"rule": self.rule, "message": self.message, **where}
        rule = f"oldSelf.hasValue() || {self.rule}"
        return {"rule": rule, "optionalOldSelf": True, "message": self.message, **where}


def _fixed(field: str, message: str) -> Rule:
    """Of a field that is always there, by its default if nobody gave it."""
    return Rule(f"self.{field} == oldSelf.{field}", message, field)


def _fixed_if_given(field: str, message: str) -> Rule:
    here, before = f"self.{field}", f"oldSelf.{field}"
    return Rule(
        f"has({here}) == has({before}) && (!has({here}) || {here} == {before})", message, field
    )


_ANOTHER = "can't be changed: make another Fork"
_SEPARATOR = "'--' separates the parts of a fork's full name: leave it out"
_OURS = f"labels and annotations of {names.GROUP} are the operator's: take another prefix"


def _no_separator(field: str) -> Rule:
    return Rule(f"!has(self.{field}) || !self.{field}.contains('--')", _SEPARATOR, field)


def _not_ours(field: str) -> Rule:
    rule = f"!has(self.{field}) || self.{field}.all(key, !key.startsWith('{names.GROUP}/'))"
    return Rule(rule, _OURS, field)


_FORK = (
    _fixed("parent", f"parent {_ANOTHER}"),
    _fixed("type", f"type {_ANOTHER}"),
    _fixed_if_given("at", f"at {_ANOTHER}"),
    _fixed("promotable", f"promotable {_ANOTHER}"),
    _fixed("isolation", f"isolation {_ANOTHER}"),
    _fixed("onParentDelete", f"onParentDelete {_ANOTHER}"),
    _fixed_if_given("forkName", f"forkName {_ANOTHER}"),
    _fixed_if_given("ttl", f"ttl {_ANOTHER}"),
    _no_separator("forkName"),
    Rule(
        "!has(self.ttl) || self.ttl.matches('[1-9]')",
        "ttl must be longer than nothing: leave it out for a fork that stays",
        "ttl",
    ),
    Rule(
        "!has(self.at) || self.type == 'Severed'",
        "at is for severed forks: set type to Severed; a continuous fork begins at the tail",
        "at",
    ),
    Rule(
        "!self.promotable || self.type == 'Continuous'",
        "only a continuous fork can be promotable: set type to Continuous, or promotable to false",
        "promotable",
    ),
    Rule(
        "self.onParentDelete == 'Orphan' || self.type == 'Severed'",
        "onParentDelete is for severed forks: a continuous one always ends with its parent",
        "onParentDelete",
    ),
    Rule(
        "self.state != 'Promoted' || self.promotable",
        "only a promotable fork can be promoted: make another Fork with promotable set to true",
        "state",
    ),
    Rule(
        "self.promotion.policy == 'Manual' || self.promotable",
        "a promotion policy other than Manual needs a promotable fork: set promotable to true",
        "promotion",
    ),
    Rule(
        "!self.approved || self.promotion.policy == 'Approval'",
        "approved is for promotion.policy Approval: with Manual set state to Promoted",
        "approved",
    ),
    Rule(
        "self.state == 'Promoted' || oldSelf.state != 'Promoted'",
        "a promotion can't be taken back: fork the parent severed, before the fork point",
        "state",
    ),
    Rule(
        "self.approved || !oldSelf.approved",
        "an approval can't be taken back: delete the Fork before it is promoted",
        "approved",
    ),
)

_PROMOTION = (
    Rule(
        "self.policy != 'Gate' || has(self.gate)",
        "promotion.policy Gate needs promotion.gate.jobTemplate: give one, or use Manual",
        "gate",
    ),
    Rule(
        "self.policy != 'Manual' || !has(self.gate)",
        "promotion.gate has no part in policy Manual: set promotion.policy to Gate or Approval",
        "gate",
    ),
)

_AT = (
    Rule(
        "has(self.position) != has(self.time)",
        "at is either a position or a time: give one of them, or leave at out for the tail",
    ),
)

_BOLT = "self.engine == 'bolt'"


def _only_for_bolt(field: str, present: str, instead: str) -> Rule:
    return Rule(f"{_BOLT} || !({present})", f"{field} is for engine bolt: {instead}", field)


_DIRECT = f"({_BOLT} && self.appends == 'Direct')"
_ERWIN = "self.engine == 'erwin'"
_LAZY = "self.engine == 'lazy'"


def _of_sequencers(at: str, lazy: str) -> tuple[tuple[str, str, str], ...]:
    """What goes together with an engine: a field, what is so where all is well, and what to do.

    `lazy`: where they are a lazy front's.
    """
    views = f"({_ERWIN} || {lazy})"
    memory = f"({views} && {at}.durability == 'memory')"
    return (
        ("members", f"{views} || {at}.members % 2 == 1", "members is odd: take 1, 3 or 5"),
        (
            "storage",
            f"{at}.members == 1 || !{at}.storage.ephemeral || {memory}",
            "several members need a volumeClaim: one that forgets what it said may undo it",
        ),
        ("mode", f"{_ERWIN} || !has({at}.mode)", "mode is for engine erwin: leave it out"),
        (
            "configurations",
            f"{_ERWIN} || !has({at}.configurations)",
            "configurations is for engine erwin: leave it out",
        ),
        (
            "durability",
            f"{views} || {at}.durability == 'fsync'",
            "durability of sequencers is for engine erwin and lazy appends: leave it out",
        ),
        (
            "acceptLoss",
            f"!{at}.acceptLoss || {memory}",
            "acceptLoss is for engine erwin and lazy appends with durability memory: leave it out",
        ),
    )


def _of_shards(at: str) -> tuple[tuple[str, str, str], ...]:
    return (
        (
            "leaving",
            f"!({_ERWIN}) || {at}.leaving.waitFor == 'Trimmed'",
            "shards of engine erwin leave when they are trimmed: set leaving.waitFor to Trimmed",
        ),
        (
            "quota",
            f"!({_ERWIN}) || {at}.quota == 0",
            "quota of shards is for engine belfast: leave it out",
        ),
        (
            "blackBox",
            f"{_ERWIN} || !has({at}.blackBox)",
            "blackBox is for engine erwin: leave it out",
        ),
        (
            "copies",
            f"!has({at}.blackBox) || {at}.copies == 1",
            "a blackBox replicates the records itself: set copies to 1",
        ),
    )


def _in_template(part: str, found: tuple[tuple[str, str, str], ...]) -> Iterator[Rule]:
    """The same of what a Log makes, whose engine is the Log's."""
    absent = f"!has(self.{part}) || !has(self.{part}.template)"
    for _, rule, message in found:
        yield Rule(f"{absent} || ({rule})", f"{part}.template: {message}", part)


def _own(found: tuple[tuple[str, str, str], ...]) -> Iterator[Rule]:
    for field, rule, message in found:
        yield Rule(rule, message, field)


_LOG = (
    _fixed("engine", "engine can't be changed: make another Log, and copy the records"),
    Rule(
        f"!has(self.sequencers) || !{_DIRECT}",
        "sequencers is for engines belfast and erwin and for appends Lazy: leave it out, or make "
        "another Log",
        "sequencers",
    ),
    Rule(
        f"!has(self.shards) || !({_BOLT})",
        "shards is for engines belfast and erwin: leave it out, or make another Log",
        "shards",
    ),
    Rule(
        f"has(self.sequencers) || {_DIRECT}",
        "engines belfast and erwin and appends Lazy need sequencers: name a SequencerSet, or give "
        "a template for one",
        "sequencers",
    ),
    Rule(
        f"has(self.shards) || {_BOLT}",
        "engines belfast and erwin need shards: name ShardGroups, or give a template for one",
        "shards",
    ),
    _only_for_bolt(
        "appends", "self.appends == 'Lazy'", "leave it out; engine erwin acknowledges so anyway"
    ),
    *_in_template("sequencers", _of_sequencers("self.sequencers.template", _BOLT)),
    *_in_template("shards", _of_shards("self.shards.template")),
    Rule(
        "!has(self.shards) || !has(self.shards.template) || !has(self.shards.template.blackBox)"
        " || !has(self.sequencers) || !has(self.sequencers.template)"
        " || !has(self.sequencers.template.mode) || self.sequencers.template.mode == 'm'",
        "shards.template: appends of mode st would wait for the blackBox: take mode m",
        "shards",
    ),
    Rule(
        f"{_BOLT} || !has(self.quota) || !has(self.quota.readBytesPerSecond)",
        "reads are limited for engine bolt alone: leave quota.readBytesPerSecond out",
        "quota",
    ),
    _only_for_bolt(
        "retention",
        "has(self.retention.age) || has(self.retention.records)",
        "leave it out, and trim the log as a client",
    ),
    _fixed_if_given("logName", "logName can't be changed: make another Log"),
    _no_separator("logName"),
)

_LOG_SEQUENCERS = (
    Rule(
        "has(self.name) != has(self.template)",
        "sequencers is either a name or a template: give one of them",
    ),
    _fixed_if_given("name", "the SequencerSet of a log can't be changed: make another Log"),
)

_LOG_SHARDS = (
    Rule(
        "has(self.names) != has(self.template)",
        "shards is either names or a template: give one of them",
    ),
    Rule(
        "has(self.names) == has(oldSelf.names)",
        "shards can't change between names and a template: make another Log",
    ),
    Rule(
        "!has(self.count) || has(self.template)",
        "count is for shards that are made from a template: scale the named ShardGroups instead",
        "count",
    ),
)

_POOL = (
    Rule("self.min <= self.max", "min is above max: raise max, or lower min", "min"),
    Rule("self.spare <= self.max", "spare is above max: raise max, or lower spare", "spare"),
    Rule(
        "!has(self.replicas) || (self.min <= self.replicas && self.replicas <= self.max)",
        "replicas lies between min and max: move those first",
        "replicas",
    ),
    _not_ours("podLabels"),
    _not_ours("podAnnotations"),
)

_DISK_CACHE = (
    Rule(
        "isQuantity(self.size) && quantity(self.size).isGreaterThan(quantity('0'))",
        "size is an amount above 0, such as 10Gi",
        "size",
    ),
)


_SEQUENCER_TEMPLATE = (
    _fixed("members", "members can't be changed: make another SequencerSet"),
    _fixed_if_given("mode", "mode can't be changed: make another SequencerSet"),
    _fixed("durability", "durability can't be changed: make another SequencerSet"),
    _fixed_if_given("configurations", "configurations can't be changed: make another SequencerSet"),
    _not_ours("podLabels"),
    _not_ours("podAnnotations"),
)

_SEQUENCERS = (
    _fixed("engine", "engine can't be changed: make another SequencerSet"),
    *_own(_of_sequencers("self", _LAZY)),
    *_SEQUENCER_TEMPLATE,
)

_ORDERING = (
    Rule(
        "self.failIntervals > self.silentIntervals",
        "failIntervals is above silentIntervals: or a replica's loss is taken for the shard's",
        "failIntervals",
    ),
)

_SHARD_TEMPLATE = (
    _fixed("copies", "copies can't be changed: make another ShardGroup, and scale this one to 0"),
    Rule(
        "has(self.blackBox) == has(oldSelf.blackBox)"
        " && (!has(self.blackBox) || self.blackBox.url == oldSelf.blackBox.url)",
        "the records stay where they are: make another ShardGroup for another blackBox",
        "blackBox",
    ),
    _not_ours("podLabels"),
    _not_ours("podAnnotations"),
)

_SHARDS = (
    Rule(f"!({_LAZY})", "a lazy front has no shards: its log has the records", "engine"),
    _fixed("engine", "engine can't be changed: make another ShardGroup"),
    _fixed("sequencers", "sequencers can't be changed: make another ShardGroup"),
    *_own(_of_shards("self")),
    *_SHARD_TEMPLATE,
)

_STORAGE = (
    Rule(
        "self.ephemeral != has(self.volumeClaim)",
        "storage is either ephemeral or a volumeClaim: give one of them",
    ),
    _fixed("ephemeral", "storage can't move between nodes' disks and volumes: make another"),
)

_VOLUME_CLAIM = (
    Rule(
        "isQuantity(self.size) && quantity(self.size).isGreaterThan(quantity('0'))",
        "size is an amount above 0, such as 10Gi",
        "size",
    ),
    Rule(
        "!isQuantity(self.size) || !isQuantity(oldSelf.size) || "
        "!quantity(self.size).isLessThan(quantity(oldSelf.size))",
        "a volume can't shrink: take the old size, or a larger one",
        "size",
    ),
    _fixed_if_given("storageClassName", "storageClassName can't be changed: make another"),
)

RULES: dict[type, tuple[Rule, ...]] = {
    ForkSpec: _FORK,
    Promotion: _PROMOTION,
    At: _AT,
    LogSpec: _LOG,
    LogSequencers: _LOG_SEQUENCERS,
    LogShards: _LOG_SHARDS,
    ShardTemplate: _SHARD_TEMPLATE,
    PoolSpec: _POOL,
    DiskCache: _DISK_CACHE,
    SequencerTemplate: _SEQUENCER_TEMPLATE,
    SequencerSetSpec: _SEQUENCERS,
    Ordering: _ORDERING,
    ShardGroupSpec: _SHARDS,
    Storage: _STORAGE,
    VolumeClaim: _VOLUME_CLAIM,
}


def _name(rule: str, message: str) -> Rule:
    return Rule(f"self.metadata.name.{rule}", message, once=True)


_NAME = (
    _name(
        f"size() <= {names.NAME_CHARS_MAX}",
        f"the name is too long: {names.NAME_CHARS_MAX} characters are the most, for its Service",
    ),
    _name(
        f"matches('{names.NAME_PATTERN}')",
        "the name is part of a Service's: use letters, digits and '-', no dots",
    ),
)
_BEGINS_A_SERVICE = _name(
    "matches('^[a-z]')", "the name begins a Service's: let it begin with a letter"
)
_NAME_IN_THE_SERVICE = _name("indexOf('--') < 0", _SEPARATOR)

_CALLED_LIKE_ITS_SEQUENCERS = Rule(
    "!has(self.spec.sequencers) || !has(self.spec.sequencers.name)"
    " || self.spec.sequencers.name == self.metadata.name",
    "rights to a set's records are rights on the Log of its name: call the Log like its set",
    "spec.sequencers",
    once=True,
)

WHOLE: dict[str, tuple[Rule, ...]] = {
    names.LOG: (*_NAME, _NAME_IN_THE_SERVICE, _CALLED_LIKE_ITS_SEQUENCERS),
    names.FORK: (
        *_NAME,
        _NAME_IN_THE_SERVICE,
        Rule(
            "self.spec.parent.kind != 'Fork' || self.spec.parent.name != self.metadata.name",
            "a fork can't be its own parent: name another Log or Fork",
            "spec.parent",
            once=True,
        ),
    ),
    names.POOL: (*_NAME, _BEGINS_A_SERVICE),
    names.SEQUENCERS: (*_NAME, _BEGINS_A_SERVICE),
    names.SHARDS: (*_NAME, _BEGINS_A_SERVICE),
}
"""Of whole resources, by kind: of the metadata only the name can be looked at."""
