"""What is said of pods, whatever runs in them: brokers, sequencers, shards."""

from enum import StrEnum
from typing import Annotated, Any

from msgspec import Meta, field

from anabranch_operator.api.borrowed import RESOURCES, TOLERATION
from anabranch_operator.api.common import Shape

Name = Annotated[str, Meta(min_length=1, max_length=253)]
Names = Annotated[
    list[Name], Meta(max_length=32, extra_json_schema={"x-kubernetes-list-type": "set"})
]
Texts = Annotated[dict[str, Annotated[str, Meta(max_length=4_096)]], Meta(max_length=64)]


class Spread(StrEnum):
    PREFERRED = "Preferred"
    """Two share a node if there is no other way."""
    REQUIRED = "Required"
    """One that finds no node of its own waits for one."""


class RolloutPolicy(StrEnum):
    AUTO = "Auto"
    """One at a time, whenever the log service can spare one."""
    ON_DELETE = "OnDelete"
    """A pod is replaced when somebody deletes it."""
    PAUSED = "Paused"
    """None is replaced because of the spec; those that fail still are."""


class PullPolicy(StrEnum):
    ALWAYS = "Always"
    """At each start of a pod."""
    IF_NOT_PRESENT = "IfNotPresent"
    """When a node doesn't have it."""
    NEVER = "Never"
    """Nodes must have it."""


class Topology(Shape, frozen=True, kw_only=True):
    """How pods are spread."""

    zones: bool = True
    """Spread them over zones where there are several."""
    hosts: Spread = Spread.PREFERRED
    """May two of them share a node if there is no other way?"""


class Rollout(Shape, frozen=True, kw_only=True):
    """How pods come to be what the spec says."""

    policy: RolloutPolicy = RolloutPolicy.AUTO
    """One at a time; or whenever somebody deletes one; or not at all."""


class Config(Shape, frozen=True, kw_only=True):
    """Where pods take their settings from, as environment."""

    config_map: Name | None = None
    """A ConfigMap with ANABRANCH_ variables."""
    secrets: Names = field(default_factory=list[str])
    """Secrets with ANABRANCH_ variables and credentials."""


class PodsSpec(Shape, frozen=True, kw_only=True):
    """What all pods of a resource have in common."""

    image: Annotated[str, Meta(min_length=1, max_length=500)]
    """What the pods run."""
    image_pull_policy: PullPolicy = PullPolicy.IF_NOT_PRESENT
    """When nodes fetch it."""
    image_pull_secrets: Names = field(default_factory=list[str])
    """What nodes need to fetch it."""
    resources: Annotated[dict[str, Any], Meta(extra_json_schema=RESOURCES)] = field(
        default_factory=dict[str, Any]
    )
    """What each pod asks for and may take."""
    drain_seconds: Annotated[int, Meta(ge=1, le=3_600)] = 60
    """How long a pod may take to hand over before it is ended."""
    config: Config = Config()
    """Where pods take their settings from."""
    service_account_name: Name | None = None
    """Who the pods are to the API server, for reviews of clients; absent: they get no token."""
    tls_secret: Name | None = None
    """What they show to whoever dials them: tls.crt, tls.key."""
    topology: Topology = Topology()
    """How pods are spread."""
    node_selector: Texts = field(default_factory=dict[str, str])
    """Which nodes they may run on."""
    tolerations: Annotated[
        list[Annotated[dict[str, Any], Meta(extra_json_schema=TOLERATION)]], Meta(max_length=64)
    ] = field(default_factory=list[dict[str, Any]])
    """Which taints of nodes they stand."""
    priority_class_name: Name | None = None
    """How they fare when a node is full."""
    pod_labels: Texts = field(default_factory=dict[str, str])
    """More labels for the pods."""
    pod_annotations: Texts = field(default_factory=dict[str, str])
    """Annotations for the pods."""
    rollout: Rollout = Rollout()
    """How pods come to be what the spec says."""
