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
    """Two pods share a node only if no other node can take one."""
    REQUIRED = "Required"
    """A pod waits until a node without another of them is free."""


class RolloutPolicy(StrEnum):
    AUTO = "Auto"
    """Replace outdated pods one at a time, whenever the log can spare one."""
    ON_DELETE = "OnDelete"
    """Replace an outdated pod only after somebody has deleted it."""
    PAUSED = "Paused"
    """Replace no pod because of a changed spec. Pods that fail are still replaced."""


class PullPolicy(StrEnum):
    ALWAYS = "Always"
    """Fetch the image at each start of a pod."""
    IF_NOT_PRESENT = "IfNotPresent"
    """Fetch the image if the node doesn't have it."""
    NEVER = "Never"
    """Never fetch the image: the node must have it already."""


class Topology(Shape, frozen=True, kw_only=True):
    """How the pods are spread over zones and nodes."""

    zones: bool = True
    """Spread the pods over zones evenly, as far as the cluster has zones."""
    hosts: Spread = Spread.PREFERRED
    """Whether two pods may share a node if no other node can take one."""


class Rollout(Shape, frozen=True, kw_only=True):
    """How running pods are replaced after the spec has changed."""

    policy: RolloutPolicy = RolloutPolicy.AUTO
    """When the operator replaces pods that were made from an older spec."""


class Config(Shape, frozen=True, kw_only=True):
    """Where the pods take their settings from, as environment variables."""

    config_map: Name | None = None
    """Name of a ConfigMap whose keys are settings, such as `ANABRANCH_LOG_FORMAT`. A change of it
    takes effect when a pod is started again.
    """
    secrets: Names = field(default_factory=list[str])
    """Names of Secrets whose keys are settings, such as `ANABRANCH_TOKEN`. They are mounted as
    files as well, so that a rotated credential takes effect without a restart. Of two Secrets with
    the same key the later one counts.
    """


class PodsSpec(Shape, frozen=True, kw_only=True):
    """What the pods of a pool, a SequencerSet or a ShardGroup have in common."""

    image: Annotated[str, Meta(min_length=1, max_length=500)]
    """Container image of the pods, such as `anabranch/anabranch:0.1.0`. A change rolls the pods."""
    image_pull_policy: PullPolicy = PullPolicy.IF_NOT_PRESENT
    """When nodes fetch the image."""
    image_pull_secrets: Names = field(default_factory=list[str])
    """Names of Secrets with the registry credentials that nodes need to fetch the image."""
    resources: Annotated[dict[str, Any], Meta(extra_json_schema=RESOURCES)] = field(
        default_factory=dict[str, Any]
    )
    """CPU and memory that each pod requests and may take at most, as in a container's `resources`.
    The memory limit must hold the caches and queues that the settings allow.
    """
    drain_seconds: Annotated[int, Meta(ge=1, le=3_600)] = 60
    """Seconds that a pod gets to hand over what it serves after it was told to end; then it is
    killed.
    """
    config: Config = Config()
    """Where the pods take their settings from."""
    service_account_name: Name | None = None
    """Name of the ServiceAccount that the pods use to ask the API server about clients' tokens and
    rights. Pods get no token for the API server if this is left out.
    """
    tls_secret: Name | None = None
    """Name of a Secret with the certificate that the pods show to clients and to each other:
    `tls.crt` and `tls.key`, and `ca.crt` where they check each other. Connections aren't encrypted
    if this is left out.
    """
    topology: Topology = Topology()
    """How the pods are spread over zones and nodes."""
    node_selector: Texts = field(default_factory=dict[str, str])
    """Labels that a node must have to run one of the pods."""
    tolerations: Annotated[
        list[Annotated[dict[str, Any], Meta(extra_json_schema=TOLERATION)]], Meta(max_length=64)
    ] = field(default_factory=list[dict[str, Any]])
    """Taints of nodes that don't keep the pods away."""
    priority_class_name: Name | None = None
    """Name of the PriorityClass that decides whom a full node evicts first."""
    pod_labels: Texts = field(default_factory=dict[str, str])
    """Labels that are added to the pods. Those of anabranch.dev are the operator's."""
    pod_annotations: Texts = field(default_factory=dict[str, str])
    """Annotations that are added to the pods. Those of anabranch.dev are the operator's."""
    rollout: Rollout = Rollout()
    """How running pods are replaced after the spec has changed."""
