"""Nodes that are being emptied, as far as the operator sees nodes."""

from anabranch_operator.plan.engine.objects import Observed, Ref
from anabranch_operator.plan.engine.world import World

_LEAVING = (
    "node.kubernetes.io/unschedulable",
    "ToBeDeletedByClusterAutoscaler",
    "karpenter.sh/disrupted",
    "karpenter.sh/disruption",
)
"""Taints of nodes from which pods are evicted, by `kubectl drain` or by who removes nodes."""


def is_leaving(world: World, pod: Observed) -> bool:
    """Is this pod's node cordoned, or about to be removed?"""
    node = world.objects.get(Ref("Node", "", pod.spec.get("nodeName") or ""))
    if node is None:
        return False
    taints = node.spec.get("taints") or ()
    return bool(node.spec.get("unschedulable")) or any(each["key"] in _LEAVING for each in taints)
