"""BrokerPool: the brokers that serve logs and forks, declared."""

from typing import Annotated

from msgspec import Meta, field

from anabranch_operator.api.common import Shape, keyed_by
from anabranch_operator.api.conditions import Condition, Conditions
from anabranch_operator.api.pods import Name, PodsSpec

BROKERS_MAX = 1_000
Count = Annotated[int, Meta(ge=0, le=BROKERS_MAX)]


class Scaling(Shape, frozen=True, kw_only=True):
    """What makes the operator ask for one more broker, where `replicas` is left out."""

    append_bytes_per_broker: Annotated[int, Meta(ge=1)] = 50 * 1024 * 1024
    """Appended in a second, on average over the pool."""
    logs_per_broker: Annotated[int, Meta(ge=1)] = 64
    """Root logs and trees of forks that one broker serves, on average over the pool."""


class DiskCache(Shape, frozen=True, kw_only=True):
    """A cache on each broker's disk, behind the one in memory."""

    size: Annotated[str, Meta(max_length=32)]
    """How much it may take, as a Kubernetes quantity."""


class PoolSpec(PodsSpec, frozen=True, kw_only=True):
    """What is wanted of the pool."""

    min: Annotated[int, Meta(ge=1, le=BROKERS_MAX)] = 2
    """There are never fewer."""
    max: Annotated[int, Meta(ge=1, le=BROKERS_MAX)] = 8
    """There are never more, but for one that replaces another."""
    spare: Count = 1
    """So many serve nothing, so that an exclusive fork needn't wait for a pod."""
    replicas: Count | None = None
    """How many there should be, within `min` and `max`; if it is left out the load decides."""
    peer_tls_secret: Name | None = None
    """What brokers and metadata members show each other: tls.crt, tls.key, ca.crt."""
    disk_cache: DiskCache | None = None
    """A cache on each broker's disk."""
    scaling: Scaling = Scaling()
    """What makes the operator ask for one more."""


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
