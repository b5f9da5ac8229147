"""What the operator watches, and nothing more: labels and names choose on the API server."""

from typing import NamedTuple

from anabranch_operator.api import names

_OURS = f"{names.MANAGED_BY}={names.FIELD_MANAGER}"


class Watched(NamedTuple):
    """One kind, in one namespace or in all."""

    kind: str
    namespace: str
    """Empty: all."""
    labels: str = ""
    fields: str = ""


def watched(
    namespace: str, lease: str, metadata: str, *, everywhere: bool, nodes: bool
) -> tuple[Watched, ...]:
    """Namespaces aren't among them: one is looked at when something in it is being deleted."""
    wide = "" if everywhere else namespace
    found = [
        Watched("Lease", namespace, fields=f"metadata.name={lease}"),
        Watched(names.POOL, namespace),
        Watched(names.SEQUENCERS, namespace),
        Watched(names.SHARDS, namespace),
        Watched("PersistentVolumeClaim", namespace, labels=_OURS),
        Watched("ConfigMap", namespace, labels=_OURS),
        Watched(names.LOG, wide),
        Watched(names.FORK, wide),
        Watched("Pod", wide, labels=names.ROLE),
        Watched("Service", wide, labels=_OURS),
        Watched("EndpointSlice", wide, labels=_OURS),
        Watched("Job", wide, labels=_OURS),
        Watched("PodDisruptionBudget", namespace, labels=_OURS),
        Watched("StatefulSet", namespace, fields=f"metadata.name={metadata}"),
    ]
    if nodes:
        found.append(Watched("Node", ""))
    return tuple(found)
