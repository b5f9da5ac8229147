"""Where each kind of object is found on the API server."""

from typing import NamedTuple

from anabranch_operator.api.names import API_VERSION, PLURALS
from anabranch_operator.plan.engine.objects import Ref


class Resource(NamedTuple):
    api_version: str
    plural: str
    namespaced: bool = True

    @property
    def group(self) -> str:
        return self.api_version.rpartition("/")[0]

    @property
    def version(self) -> str:
        return self.api_version.rpartition("/")[2]

    @property
    def root(self) -> str:
        return f"/apis/{self.api_version}" if self.group else f"/api/{self.api_version}"


RESOURCES: dict[str, Resource] = {
    **{kind: Resource(API_VERSION, plural) for kind, plural in PLURALS.items()},
    "Pod": Resource("v1", "pods"),
    "Service": Resource("v1", "services"),
    "Secret": Resource("v1", "secrets"),
    "PersistentVolumeClaim": Resource("v1", "persistentvolumeclaims"),
    "ConfigMap": Resource("v1", "configmaps"),
    "Node": Resource("v1", "nodes", namespaced=False),
    "Namespace": Resource("v1", "namespaces", namespaced=False),
    "EndpointSlice": Resource("discovery.k8s.io/v1", "endpointslices"),
    "Job": Resource("batch/v1", "jobs"),
    "PodDisruptionBudget": Resource("policy/v1", "poddisruptionbudgets"),
    "StatefulSet": Resource("apps/v1", "statefulsets"),
    "Lease": Resource("coordination.k8s.io/v1", "leases"),
    "Event": Resource("events.k8s.io/v1", "events"),
    "ValidatingWebhookConfiguration": Resource(
        "admissionregistration.k8s.io/v1", "validatingwebhookconfigurations", namespaced=False
    ),
}
"""Nothing is asked of the API server about a kind that isn't here."""


def collection(kind: str, namespace: str = "") -> str:
    """The path of all objects of a kind, in one namespace or in all."""
    resource = RESOURCES[kind]
    within = f"/namespaces/{namespace}" if namespace and resource.namespaced else ""
    return f"{resource.root}{within}/{resource.plural}"


def place(ref: Ref, subresource: str = "") -> str:
    """The path of one object, or of a part of it."""
    path = f"{collection(ref.kind, ref.namespace)}/{ref.name}"
    return f"{path}/{subresource}" if subresource else path
