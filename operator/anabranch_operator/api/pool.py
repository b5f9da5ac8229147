"""BrokerPool: the brokers that serve logs and forks, declared."""

from typing import Annotated

from msgspec import Meta, field

from anabranch_operator.api.common import Shape, keyed_by
from anabranch_operator.api.conditions import Condition, Conditions
from anabranch_operator.api.pods import Name, PodsSpec

BROKERS_MAX = 1_000
OF_THE_POOL = ("min", "max", "spare", "replicas", "scaling", "rollout")
"""Fields that say nothing about a single pod."""

Count = Annotated[int, Meta(ge=0, le=BROKERS_MAX)]


class Scaling(Shape, frozen=True, kw_only=True):
    """The load at which the operator adds a broker, where `replicas` is left out."""

    append_bytes_per_broker: Annotated[int, Meta(ge=1)] = 50 * 1024 * 1024
    """Bytes that one broker should take in a second. Another broker is added when the pool's
    average is higher.
    """
    logs_per_broker: Annotated[int, Meta(ge=1)] = 64
    """Root logs and trees of forks that one broker should serve. Another broker is added when the
    pool's average is higher.
    """


class DiskCache(Shape, frozen=True, kw_only=True):
    """A cache of objects on each broker's disk, behind the one in memory."""

    size: Annotated[str, Meta(max_length=32)]
    """Space that the cache may take on the node's disk, as a Kubernetes quantity such as `20Gi`."""


class PoolSpec(PodsSpec, frozen=True, kw_only=True):
    """What is wanted of the pool of brokers."""

    min: Annotated[int, Meta(ge=1, le=BROKERS_MAX)] = 2
    """Least number of brokers, whatever the load."""
    max: Annotated[int, Meta(ge=1, le=BROKERS_MAX)] = 8
    """Greatest number of brokers. One more may run for a moment while it replaces another."""
    spare: Count = 1
    """Number of brokers to keep idle, so that an exclusive fork needn't wait for a new pod."""
    replicas: Count | None = None
    """Number of brokers, from `min` to `max`. The operator follows the load if this is left out."""
    peer_tls_secret: Name | None = None
    """Name of a Secret with the certificate by which brokers and metadata members know each other:
    `tls.crt`, `tls.key` and `ca.crt`.
    """
    disk_cache: DiskCache | None = None
    """A cache on each broker's disk; none if this is left out."""
    scaling: Scaling = Scaling()
    """The load at which the operator adds a broker."""


class Broker(Shape, frozen=True, kw_only=True):
    """One broker of the pool."""

    pod: str
    """Name of the broker's pod."""
    node: str | None = None
    """Name of the node that the pod runs on."""
    state: str
    """What the broker is doing: `starting`, `ready`, `draining` (it hands over), `lost` (it doesn't
    answer) or `failing` (its pod doesn't come up).
    """
    epoch: int | None = None
    """Epoch under which the log service has registered the broker; each start gets another."""
    roots: int = 0
    """Number of root logs that the broker serves."""
    trees: int = 0
    """Number of trees whose forks the broker serves."""
    exclusive: int = 0
    """Number of exclusive forks that the broker serves."""
    updated: bool = True
    """Whether the pod was made from the present spec."""


class PoolStatus(Shape, frozen=True, kw_only=True):
    """What the operator last saw of the pool."""

    observed_generation: int = 0
    """The `metadata.generation` that this status is about; a lower one means that the operator
    hasn't acted on the latest change of the spec yet.
    """
    replicas: int = 0
    """Number of pods that aren't ending."""
    ready: int = 0
    """Number of brokers that serve logs, or could."""
    spare: int = 0
    """Number of ready brokers that serve no log."""
    updated: int = 0
    """Number of pods that were made from the present spec."""
    desired: int = 0
    """Number of brokers that the operator is working towards."""
    waiting: int = 0
    """Number of exclusive forks that wait for an idle broker."""
    selector: str = ""
    """Label selector of the pool's pods, for autoscalers."""
    brokers: Annotated[list[Broker], keyed_by("pod")] = field(default_factory=list[Broker])
    """The brokers, by the names of their pods."""
    conditions: Conditions = field(default_factory=list[Condition])
    """Conditions of the pool: Ready, Progressing, Degraded and others, each with a reason and a
    message.
    """
