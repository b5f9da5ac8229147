"""Names that resources, children and the world agree on."""

from typing import NamedTuple

from anabranch_operator.api.anabranch_names import ENDING

GROUP = "anabranch.dev"
VERSION = "v1alpha1"
API_VERSION = f"{GROUP}/{VERSION}"
CATEGORY = "anabranch"

LOG, FORK, POOL = "Log", "Fork", "BrokerPool"
SEQUENCERS, SHARDS = "SequencerSet", "ShardGroup"
PLURALS = {
    LOG: "logs",
    FORK: "forks",
    POOL: "brokerpools",
    SEQUENCERS: "sequencersets",
    SHARDS: "shardgroups",
}

FIELD_MANAGER = "anabranch-operator"
STATUS_MANAGER = "anabranch-operator-status"
MARK_MANAGER = "anabranch-operator-finalizer"
"""Owns the label `made-by` on Forks. Earlier versions put a finalizer beside the label by the same
manager, and it goes when the manager applies without it.
"""

FINALIZER = f"{GROUP}/log"
"""The finalizer of earlier versions: taken away wherever it is found."""

MADE_BY = f"{GROUP}/made-by"
POOL_LABEL = f"{GROUP}/pool"
ROLE = f"{GROUP}/role"
FORK_LABEL = f"{GROUP}/fork"
SEQUENCERS_LABEL = f"{GROUP}/sequencers"
SHARDS_LABEL = f"{GROUP}/shards"
MADE_FOR = f"{GROUP}/made-for"
"""The Log that a SequencerSet or ShardGroup was made for."""
SHARD_LABEL = f"{GROUP}/shard"
LOG_ID = f"{GROUP}/log-id"
"""Of a SequencerSet: id of the log whose lazy appends it takes. Its pods are made once it is there;
that the log keeps it when its Log is deleted goes by this too.
"""
TEMPLATE = f"{GROUP}/template"
"""The hash of what a pod was made from; the operator's own version is no part of it."""
MANAGED_BY = "app.kubernetes.io/managed-by"

BROKER, METADATA, GATEWAY, GATE = "broker", "metadata", "gateway", "gate"
SEQUENCER, SHARD = "sequencer", "shard"

PAUSED = f"{GROUP}/paused"
FORGET = f"{GROUP}/forget"
"""`true`: the log stays when the resource is deleted, whatever its deletion policy."""
CASCADE = f"{GROUP}/cascade"
"""`true`: the log ends with its resource though forks inherit from it, and they end with it."""

NAME_PATTERN = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
NAME_CHARS_MAX = 48
"""So that a Service's name, `fork-` before it, is a DNS label."""

CLIENT_PORT = 7420
PROBE_PORT = 7422
METADATA_PROBE_PORT = 7431
SEQUENCER_PORT, SEQUENCER_PROBE_PORT = 7440, 7441
SHARD_PORT, SHARD_PROBE_PORT = 7450, 7451

AUDIENCE = "anabranch"
RUN_DIR = "/var/run/anabranch"
"""Where pods find a token for the log service and the authority to trust."""


def owner(namespace: str, kind: str, name: str, uid: str) -> str:
    """How the log service knows whose a log is."""
    return f"k8s/{namespace}/{kind}/{name}/{uid}"


OWNERS = "k8s/"
"""What every owner of ours begins with."""

ORPHAN = "Orphan"
"""The kind under which a log without a resource is planned; it has its owner for a name."""


class Declares(NamedTuple):
    """The resource that an owner names."""

    namespace: str
    kind: str
    name: str
    uid: str


def declares(owner: str) -> Declares | None:
    match owner.removeprefix(OWNERS).split("/"):
        case [namespace, kind, name, uid] if owner.startswith(OWNERS):
            return Declares(namespace, kind, name, uid.removesuffix(ENDING))
        case _:
            return None


def ending(owner: str) -> str:
    """The owner of a log that ends with its resource; without the suffix the log is released."""
    return owner + ENDING


def is_ending(owner: str) -> bool:
    return owner.endswith(ENDING)


def plain(owner: str) -> str:
    """The owner without what it says about the log's end."""
    return owner.removesuffix(ENDING)


def service_name(kind: str, name: str) -> str:
    """The Service by which one log or fork is reached."""
    return f"{kind.lower()}-{name}"
