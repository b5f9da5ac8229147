"""The CRDs: everything above, put together as the API server takes it."""

from dataclasses import dataclass
from typing import Any

from anabranch_operator.api import names
from anabranch_operator.api.conditions import Type
from anabranch_operator.api.fork import ForkSpec, ForkStatus
from anabranch_operator.api.generate.schema import JsonSchema, filled, schema
from anabranch_operator.api.log import LogSpec, LogStatus
from anabranch_operator.api.pool import PoolSpec, PoolStatus
from anabranch_operator.api.rules import WHOLE
from anabranch_operator.api.sequencers import SequencerSetSpec, SequencerSetStatus
from anabranch_operator.api.shards import ShardGroupSpec, ShardGroupStatus


@dataclass(frozen=True, slots=True)
class Column:
    """One column of `kubectl get`."""

    name: str
    path: str
    prose: str
    type: str = "string"
    wide: bool = False
    """Shown by `-o wide` only."""

    def written(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "type": self.type,
            "description": self.prose,
            "jsonPath": self.path,
            "priority": int(self.wide),
        }


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of resource."""

    name: str
    short: str
    summary: str
    spec: type
    status: type
    columns: tuple[Column, ...]
    scaled: str = ""
    """The field that the subresource `scale` sets, if it has one."""
    selectable: tuple[str, ...] = ()
    """What `--field-selector` finds, from Kubernetes 1.31 on."""

    @property
    def plural(self) -> str:
        return names.PLURALS[self.name]

    @property
    def full_name(self) -> str:
        return f"{self.plural}.{names.GROUP}"


def _of_condition(about: Type, field: str) -> str:
    return f'.status.conditions[?(@.type=="{about.value}")].{field}'


_PHASE = Column("Phase", ".status.phase", "Where the log or fork is in its life.")
_BROKER = Column("Broker", ".status.broker", "The pod whose broker serves the log.")
_READY = Column("Ready", _of_condition(Type.READY, "status"), "Whether it can be used.")
_REASON = Column(
    "Reason", _of_condition(Type.READY, "reason"), "Why it can or can't be used.", wide=True
)
_ENDPOINT = Column(
    "Endpoint", ".status.endpoint", "The URL by which clients reach the log.", wide=True
)
_AGE = Column("Age", ".metadata.creationTimestamp", "Time since the resource was made.", "date")


def _number(name: str, path: str, prose: str, *, wide: bool = False) -> Column:
    return Column(name, path, prose, "integer", wide)


KINDS = (
    Kind(
        names.LOG,
        "alog",
        "A root log of the log service.",
        LogSpec,
        LogStatus,
        (
            Column("Engine", ".spec.engine", "The engine that stores and orders the records."),
            _PHASE,
            _number("Tail", ".status.tail", "The position that the next record gets."),
            _number("Forks", ".status.forks", "Number of forks of the log."),
            _BROKER,
            _READY,
            _REASON,
            _number("Settled", ".status.settled", "All positions below this are final.", wide=True),
            Column("Appends", ".spec.appends", "Direct, or lazy.", wide=True),
            _number(
                "View", ".status.view", "Engine erwin, lazy appends: view of the log.", wide=True
            ),
            Column(
                "Leader", ".status.leader", "Engine erwin, lazy appends: leader's pod.", wide=True
            ),
            _number(
                "Backlog",
                ".status.backlog",
                "Engine erwin, lazy appends: acknowledged records that have no position yet.",
                wide=True,
            ),
            Column(
                "Durability",
                ".status.durability",
                "Lazy appends: where acknowledged records are, on disks or in memory.",
                wide=True,
            ),
            _number("Shards", ".status.shardsReady", "Shards that take appends.", wide=True),
            _number(
                "Start", ".status.start", "The first position that can still be read.", wide=True
            ),
            _ENDPOINT,
            _AGE,
        ),
        selectable=(".status.phase",),
    ),
    Kind(
        names.FORK,
        "fk",
        "A fork of a log: made at once, at no cost in data; promoted or squashed in the end.",
        ForkSpec,
        ForkStatus,
        (
            Column("Parent", ".spec.parent.name", "Name of the parent's resource."),
            Column(
                "Kind",
                ".spec.type",
                "Whether the fork goes on receiving what is appended to its parent.",
            ),
            _number(
                "At",
                ".status.forkPoint",
                "The first position that isn't inherited from the parent.",
            ),
            _PHASE,
            _BROKER,
            _number("Lag", ".status.lag", "Records of the parent that the fork doesn't see."),
            _READY,
            _REASON,
            _number(
                "Own",
                ".status.ownRecords",
                "Records that were appended to the fork itself.",
                wide=True,
            ),
            Column("Expires", ".status.expiresAt", "When the fork's time to live ends.", wide=True),
            _ENDPOINT,
            _AGE,
        ),
        selectable=(".spec.parent.name", ".status.phase"),
    ),
    Kind(
        names.POOL,
        "bp",
        "The brokers that serve logs and forks.",
        PoolSpec,
        PoolStatus,
        (
            _number(
                "Desired",
                ".status.desired",
                "Number of brokers that the operator is working towards.",
            ),
            _number("Ready", ".status.ready", "Brokers that serve logs, or could."),
            _number("Spare", ".status.spare", "Ready brokers that serve no log."),
            _number("Updated", ".status.updated", "Pods that were made from the present spec."),
            _number("Waiting", ".status.waiting", "Exclusive forks that wait for an idle broker."),
            Column(
                "Complete",
                _of_condition(Type.READY, "status"),
                "Whether all brokers that are wanted serve.",
                wide=True,
            ),
            _REASON,
            Column("Image", ".spec.image", "Container image of the brokers.", wide=True),
            _AGE,
        ),
        scaled="replicas",
    ),
    Kind(
        names.SEQUENCERS,
        "seq",
        "The sequencing group of a Belfast or Erwin log, or of a lazy front of a Bolt log.",
        SequencerSetSpec,
        SequencerSetStatus,
        (
            Column("Leader", ".status.leader", "The leader's pod."),
            _number("View", ".status.view", "View of the log."),
            _number(
                "Members",
                ".status.members",
                "Sequencers that count towards what is acknowledged.",
            ),
            _number("Stable", ".status.confirmed", "Positions below this are final."),
            _number(
                "Backlog",
                ".status.backlog",
                "Engine erwin, lazy front: acknowledged records that have no position yet.",
            ),
            _READY,
            _REASON,
            Column("Engine", ".spec.engine", "The engine that orders the records.", wide=True),
            Column(
                "Durability",
                ".status.durability",
                "Lazy front: where acknowledged records are, on disks or in memory.",
                wide=True,
            ),
            _number(
                "Lasts",
                ".status.ringLastsSeconds",
                "Lazy front: seconds for which its ring has room if nothing is committed.",
                wide=True,
            ),
            _number("Epoch", ".status.term", "Engine belfast: term of the leader.", wide=True),
            Column(
                "Mode",
                ".status.mode",
                "Engine belfast: how the present window is ordered.",
                wide=True,
            ),
            _number(
                "Window",
                ".status.window",
                "Engine belfast: the window whose records are being ordered.",
                wide=True,
            ),
            _ENDPOINT,
            _AGE,
        ),
    ),
    Kind(
        names.SHARDS,
        "sg",
        "Shards of a Belfast or Erwin log.",
        ShardGroupSpec,
        ShardGroupStatus,
        (
            _number("Shards", ".status.shards", "Shards that there are, also those that leave."),
            _number("Desired", ".spec.shards", "Number of shards that are wanted."),
            _number("Window", ".status.window", "The window whose records are being ordered."),
            _number(
                "Spec%",
                ".status.speculation",
                "Percentage of speculative deliveries that were confirmed.",
            ),
            _READY,
            _REASON,
            Column("Engine", ".spec.engine", "The engine that stores the records.", wide=True),
            _number("Seated", ".status.seated", "Shards that take appends.", wide=True),
            _number("Copies", ".spec.copies", "Replicas of each shard.", wide=True),
            Column("Sequencers", ".spec.sequencers", "The log's SequencerSet.", wide=True),
            Column(
                "Black box",
                ".spec.blackBox.url",
                "Engine erwin: where the shards keep their records, if not on volumes.",
                wide=True,
            ),
            _AGE,
        ),
        scaled="shards",
    ),
)

_META = (
    ("apiVersion", "The group and version of this kind."),
    ("kind", "The kind of the resource."),
)


def crd(kind: Kind) -> dict[str, Any]:
    """One kind's CustomResourceDefinition."""
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": kind.full_name,
            "labels": {
                "app.kubernetes.io/name": "anabranch",
                "app.kubernetes.io/part-of": "anabranch",
            },
        },
        "spec": {
            "group": names.GROUP,
            "scope": "Namespaced",
            "names": {
                "kind": kind.name,
                "listKind": f"{kind.name}List",
                "plural": kind.plural,
                "singular": kind.name.lower(),
                "shortNames": [kind.short],
                "categories": [names.CATEGORY],
            },
            "versions": [_version(kind)],
        },
    }


def _version(kind: Kind) -> dict[str, Any]:
    selectable = [{"jsonPath": path} for path in kind.selectable]
    return {
        "name": names.VERSION,
        "served": True,
        "storage": True,
        "additionalPrinterColumns": [column.written() for column in kind.columns],
        **({"selectableFields": selectable} if selectable else {}),
        "subresources": {"status": {}, **({"scale": _scale(kind.scaled)} if kind.scaled else {})},
        "schema": {"openAPIV3Schema": whole(kind)},
    }


def _scale(field: str) -> dict[str, str]:
    return {
        "specReplicasPath": f".spec.{field}",
        "statusReplicasPath": f".status.{field}",
        "labelSelectorPath": ".status.selector",
    }


def whole(kind: Kind) -> JsonSchema:
    """The schema of the kind's resources."""
    meta: JsonSchema = {name: {"type": "string", "description": prose} for name, prose in _META}
    spec = schema(kind.spec, defaults=True)
    needed = "required" in spec
    return {
        "description": kind.summary,
        "type": "object",
        **({"required": ["spec"]} if needed else {}),
        "properties": {
            **meta,
            "metadata": {"type": "object"},
            "spec": spec if needed else {**spec, "default": filled(spec)},
            "status": schema(kind.status, defaults=False),
        },
        "x-kubernetes-validations": [rule.written() for rule in WHOLE[kind.name]],
    }
