"""BrokerPool: the brokers that serve logs and forks, declared."""

from enum import StrEnum
from typing import Annotated, Any

from msgspec import Meta, field

from anabranch_operator.api.borrowed import RESOURCES, TOLERATION
from anabranch_operator.api.common import Shape, keyed_by
from anabranch_operator.api.conditions import Condition, Conditions

BROKERS_MAX = 1_000
Name = Annotated[str, Meta(min_length=1, max_length=253)]
Names = Annotated[
    list[Name], Meta(max_length=32, extra_json_schema={"x-kubernetes-list-type": "set"})
]
Texts = Annotated[dict[str, Annotated[str, Meta(max_length=4_096)]], Meta(max_length=64)]
Count = Annotated[int, Meta(ge=0, le=BROKERS_MAX)]


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
    """How brokers are spread."""

    zones: bool = True
    """Spread them over zones where there are several."""
    hosts: Spread = Spread.PREFERRED
    """May two of them share a node if there is no other way?"""


class Scaling(Shape, frozen=True, kw_only=True):
    """What makes the operator ask for one more broker, where `replicas` is left out."""

    append_bytes_per_broker: Annotated[int, Meta(ge=1)] = 50 * 1024 * 1024
    """Appended in a second, on average over the pool."""
    logs_per_broker: Annotated[int, Meta(ge=1)] = 64
    """Root logs and trees of forks that one broker serves, on average over the pool."""


class Rollout(Shape, frozen=True, kw_only=True):
    """How pods come to be what the spec says."""

    policy: RolloutPolicy = RolloutPolicy.AUTO
    """One at a time; or whenever somebody deletes one; or not at all."""


class Config(Shape, frozen=True, kw_only=True):
    """Where brokers take their settings from, as environment."""

    config_map: Name | None = None
    """A ConfigMap with ANABRANCH_ variables."""
    secrets: Names = field(default_factory=list[str])
    """Secrets with ANABRANCH_ variables and credentials."""


class DiskCache(Shape, frozen=True, kw_only=True):
    """A cache on each broker's disk, behind the one in memory."""

    size: Annotated[str, Meta(max_length=32)]
    """How much it may take, as a Kubernetes quantity."""


class PoolSpec(Shape, frozen=True, kw_only=True):
    """What is wanted of the pool."""

    min: Annotated[int, Meta(ge=1, le=BROKERS_MAX)] = 2
    """There are never fewer."""
    max: Annotated[int, Meta(ge=1, le=BROKERS_MAX)] = 8
    """There are never more, but for one that replaces another."""
    spare: Count = 1
    """So many serve nothing, so that an exclusive fork needn't wait for a pod."""
    replicas: Count | None = None
    """How many there should be, within `min` and `max`; if it is left out the load decides."""
    image: Annotated[str, Meta(min_length=1, max_length=500)]
    """What brokers run."""
    image_pull_policy: PullPolicy = PullPolicy.IF_NOT_PRESENT
    """When nodes fetch it."""
    image_pull_secrets: Names = field(default_factory=list[str])
    """What nodes need to fetch it."""
    resources: Annotated[dict[str, Any], Meta(extra_json_schema=RESOURCES)] = field(
        default_factory=dict[str, Any]
    )
    """What each broker asks for and may take."""
    drain_seconds: Annotated[int, Meta(ge=1, le=3_600)] = 60
    """How long a broker may take to hand over before it is ended."""
    config: Config = Config()
    """Where brokers take their settings from."""
    tls_secret: Name | None = None
    """What brokers show to clients: tls.crt, tls.key."""
    peer_tls_secret: Name | None = None
    """What brokers and metadata members show each other: tls.crt, tls.key, ca.crt."""
    service_account_name: Name | None = None
    """Who brokers are towards the API server, for reviews of clients' tokens."""
    topology: Topology = Topology()
    """How brokers are spread."""
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
    disk_cache: DiskCache | None = None
    """A cache on each broker's disk."""
    scaling: Scaling = Scaling()
    """What makes the operator ask for one more."""
    rollout: Rollout = Rollout()
    """How pods come to be what the spec says."""


class Broker(Shape, frozen=True, kw_only=True):
    """One broker."""

    pod: str
    """The pod's name."""
    node: str | None = None
    """Where it runs."""
    state: str
    """`starting`, `ready`, `draining`, `lost` or `failing`."""
    epoch: int | None = None
    """Which life of a broker the log service has registered."""
    roots: int = 0
    """Root logs that it serves."""
    trees: int = 0
    """Trees whose forks it serves."""
    exclusive: int = 0
    """Forks that it serves alone."""
    updated: bool = True
    """Is it what the spec says?"""


class PoolStatus(Shape, frozen=True, kw_only=True):
    """What there is of the pool."""

    observed_generation: int = 0
    """The generation of the spec that this status is about."""
    replicas: int = 0
    """Pods that aren't on their way out."""
    ready: int = 0
    """Brokers that serve, or could."""
    spare: int = 0
    """Brokers that serve nothing."""
    updated: int = 0
    """Pods that are what the spec says."""
    desired: int = 0
    """How many there should be now."""
    waiting: int = 0
    """Forks that wait for a broker of their own."""
    selector: str = ""
    """Labels that all of its pods bear, for autoscalers."""
    brokers: Annotated[list[Broker], keyed_by("pod")] = field(default_factory=list[Broker])
    """Each of them."""
    conditions: Conditions = field(default_factory=list[Condition])
    """What can be said of it."""
