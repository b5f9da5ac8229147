"""What the pods of every resource are made of.

A pod is outdated when what people declare of it has changed; never because an operator of another
version would build it otherwise: that one's pods come as others go (ADR 0024).
"""

import hashlib
from collections.abc import Container, Iterable, Sequence
from functools import cache
from typing import Any

import msgspec

from anabranch_operator.api import names
from anabranch_operator.api.pods import PodsSpec, Spread
from anabranch_operator.plan.engine.objects import Document, Observed
from anabranch_operator.plan.log.services import metadata

GRACE_S = 15
"""After a pod's own time to hand over, before the kubelet ends it."""

TLS_DIR = f"{names.RUN_DIR}/tls"
SECRETS_DIR = f"{names.RUN_DIR}/secrets"
"""Secrets are files too: tokens in files are read anew when they change, variables never."""
ACCOUNT_DIR = "/var/run/secrets/kubernetes.io/serviceaccount"
"""Where a process looks for what it shows to the API server."""
_TOKEN_S = 3_600
_HASH_CHARS = 10

Mounted = tuple[Document, Document]
"""A volume, and where a container has it."""


class Body(msgspec.Struct, frozen=True, kw_only=True):
    """What is particular about one pod."""

    owner: Observed
    name: str
    subdomain: str
    """The headless Service that gives it its name."""
    role: str
    """What its container runs, and is called."""
    labels: dict[str, str]
    apart: dict[str, str]
    """The labels of those that should be on other nodes, and in other zones."""
    template: str
    ports: tuple[int, int]
    """For clients, and for probes."""
    settings: dict[str, str]
    variables: list[Document] = []
    """What these are made of."""
    volumes: list[Mounted] = []
    group: int = 0
    """Whose the files on its volumes are; 0: it has none, or the platform chooses."""


def template(spec: PodsSpec, aside: Container[str]) -> str:
    """What a pod's label tells of what it was made from. Fields at their defaults don't count, so
    that a field which is new doesn't either; nor do those that say nothing about a single pod.
    """
    return digest({key: each for key, each in _declared(spec).items() if key not in aside})


def digest(declared: Document) -> str:
    """Short enough for a label; the order of keys doesn't count."""
    text = msgspec.json.encode(declared, order="deterministic")
    return hashlib.sha256(text).hexdigest()[:_HASH_CHARS]


def selector(labels: Document) -> str:
    """As autoscalers want it."""
    return ",".join(f"{key}={value}" for key, value in sorted(labels.items()))


def headless(owner: Observed, name: str, labels: dict[str, str], port: int) -> Document:
    """Whether a pod may be asked is the log's to say, so names don't wait for probes."""
    ports = {"name": "clients", "port": port, "protocol": "TCP", "targetPort": port}
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata(owner, name, labels),
        "spec": {
            "clusterIP": "None",
            "publishNotReadyAddresses": True,
            "selector": labels,
            "ports": [ports],
        },
    }


def budget(owner: Observed, name: str, labels: dict[str, str], least: int) -> Document:
    """For when nobody answers evictions. It counts from below: nobody but the operator knows how
    many pods are meant.
    """
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": metadata(owner, name, labels),
        "spec": {
            "minAvailable": least,
            "selector": {"matchLabels": labels},
            "unhealthyPodEvictionPolicy": "AlwaysAllow",
        },
    }


def pod(spec: PodsSpec, body: Body) -> Document:
    labels = {**spec.pod_labels, **body.labels, names.TEMPLATE: body.template}
    meta = dict(metadata(body.owner, body.name, labels))
    if spec.pod_annotations:
        meta["annotations"] = dict(spec.pod_annotations)
    made: dict[str, Any] = {
        "hostname": body.name,
        "subdomain": body.subdomain,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": spec.drain_seconds + GRACE_S,
        "securityContext": _security(body),
        "containers": [_container(spec, body)],
        "volumes": [volume for volume, _ in _volumes(spec, body)],
        **_placement(spec, body.apart),
    }
    if spec.service_account_name:
        made["serviceAccountName"] = spec.service_account_name
    if spec.image_pull_secrets:
        made["imagePullSecrets"] = [{"name": each} for each in spec.image_pull_secrets]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": made}


def _security(body: Body) -> Document:
    made: dict[str, Any] = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
    if body.group:
        made |= {"fsGroup": body.group, "fsGroupChangePolicy": "OnRootMismatch"}
    return made


def secret(name: str, secret: str, path: str) -> Mounted:
    volume = {"name": name, "secret": {"secretName": secret}}
    return volume, {"name": name, "mountPath": path, "readOnly": True}


def _account() -> Mounted:
    """What a pod shows to the API server when it asks about a client's token."""
    token = {"serviceAccountToken": {"path": "token", "expirationSeconds": _TOKEN_S}}
    authority = {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}
    field = {"path": "namespace", "fieldRef": {"fieldPath": "metadata.namespace"}}
    sources = [token, {"configMap": authority}, {"downwardAPI": {"items": [field]}}]
    volume = {"name": "api", "projected": {"sources": sources}}
    return volume, {"name": "api", "mountPath": ACCOUNT_DIR, "readOnly": True}


def _secrets(names: Sequence[str]) -> Mounted:
    """All of them in one folder; of two with the same key the later counts, as for variables."""
    sources = [{"secret": {"name": each}} for each in names]
    volume = {"name": "secrets", "projected": {"sources": sources}}
    return volume, {"name": "secrets", "mountPath": SECRETS_DIR, "readOnly": True}


def _declared(shape: msgspec.Struct) -> dict[str, Any]:
    given = msgspec.structs.asdict(shape)
    return {
        field.name: _declared(value) if isinstance(value, msgspec.Struct) else value
        for field in _fields(type(shape))
        if (value := given[field.name]) != _default(field)
    }


@cache
def _fields(kind: type[msgspec.Struct]) -> tuple[msgspec.structs.FieldInfo, ...]:
    """Finding them costs more than all else in a template."""
    return msgspec.structs.fields(kind)


def _default(field: msgspec.structs.FieldInfo) -> object:
    made = field.default_factory
    return field.default if made is msgspec.NODEFAULT else made()


def _container(spec: PodsSpec, body: Body) -> Document:
    sources: list[Document] = [{"secretRef": {"name": each}} for each in spec.config.secrets]
    if spec.config.config_map:
        sources.insert(0, {"configMapRef": {"name": spec.config.config_map}})
    clients, probes = body.ports
    return {
        "name": body.role,
        "image": spec.image,
        "imagePullPolicy": spec.image_pull_policy,
        "command": ["anabranch", body.role],
        "env": [
            *body.variables,
            *_environment(body.settings.items()),
            *_environment([("SECRETS", SECRETS_DIR)] if spec.config.secrets else ()),
        ],
        "envFrom": sources,
        "ports": [
            {"name": "clients", "containerPort": clients},
            {"name": "probes", "containerPort": probes},
        ],
        "startupProbe": _probe("/healthz", periodSeconds=2, failureThreshold=90),
        "livenessProbe": _probe("/healthz", periodSeconds=10, failureThreshold=6),
        "readinessProbe": _probe("/readyz", periodSeconds=5, failureThreshold=3),
        "resources": spec.resources,
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": [mount for _, mount in _volumes(spec, body)],
    }


def _environment(settings: Iterable[tuple[str, str]]) -> list[Document]:
    return [{"name": f"ANABRANCH_{name}", "value": value} for name, value in settings]


def _probe(path: str, **times: int) -> Document:
    return {"httpGet": {"path": path, "port": "probes"}, "timeoutSeconds": 5, **times}


def _volumes(spec: PodsSpec, body: Body) -> list[Mounted]:
    """Nothing else of a pod can be written to."""
    found: list[Mounted] = [
        (
            {"name": "tmp", "emptyDir": {"sizeLimit": "256Mi"}},
            {"name": "tmp", "mountPath": "/tmp"},  # noqa: S108 - of the pod alone
        )
    ]
    if spec.tls_secret:
        found.append(secret("tls", spec.tls_secret, TLS_DIR))
    if spec.config.secrets:
        found.append(_secrets(spec.config.secrets))
    found += body.volumes
    if spec.service_account_name:
        found.append(_account())
    return found


def _placement(spec: PodsSpec, labels: dict[str, str]) -> dict[str, Any]:
    selector = {"matchLabels": labels}
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": selector}
    found: dict[str, Any] = {}
    if spec.topology.hosts is Spread.REQUIRED:
        apart: Document = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    else:
        preferred = {"weight": 100, "podAffinityTerm": term}
        apart = {"preferredDuringSchedulingIgnoredDuringExecution": [preferred]}
    found["affinity"] = {"podAntiAffinity": apart}
    if spec.topology.zones:
        zones = {
            "maxSkew": 1,
            "topologyKey": "topology.kubernetes.io/zone",
            "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": selector,
        }
        found["topologySpreadConstraints"] = [zones]
    if spec.node_selector:
        found["nodeSelector"] = dict(spec.node_selector)
    if spec.tolerations:
        found["tolerations"] = list(spec.tolerations)
    if spec.priority_class_name:
        found["priorityClassName"] = spec.priority_class_name
    return found
