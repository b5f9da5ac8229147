"""What a broker's pod is made of, and what stands around a pool's pods.

A pod is outdated when what people declare of it has changed; never because an operator of another
version would build it otherwise: that one's pods come as others go (ADR 0024).
"""

import hashlib
from typing import Any

import msgspec

from anabranch_operator.api import names
from anabranch_operator.api.pods import Spread
from anabranch_operator.api.pool import PoolSpec
from anabranch_operator.plan.faces import metadata
from anabranch_operator.plan.objects import Document
from anabranch_operator.plan.quantities import whole
from anabranch_operator.plan.world import Pool

GRACE_S = 15
"""After a broker's own time to hand over, before the kubelet ends it."""

PEER_DIR = f"{names.RUN_DIR}/peer"
TLS_DIR = f"{names.RUN_DIR}/tls"
ACCOUNT_DIR = "/var/run/secrets/kubernetes.io/serviceaccount"
CACHE_DIR = "/var/cache/anabranch"

_OF_THE_POOL = ("min", "max", "spare", "replicas", "scaling", "rollout")
"""Fields that say nothing about a single pod."""
_HASH_CHARS = 10
_CACHE_PART = 0.9
"""Of its volume: a pod whose volume overflows is put off its node."""
_TOKEN_S = 3_600


def template(spec: PoolSpec) -> str:
    """What a pod's label tells of what it was made from. Fields at their defaults don't count, so
    that a field which is new doesn't either.
    """
    declared = {key: each for key, each in _declared(spec).items() if key not in _OF_THE_POOL}
    text = msgspec.json.encode(declared, order="deterministic")
    return hashlib.sha256(text).hexdigest()[:_HASH_CHARS]


def subdomain(pool: str) -> str:
    """The headless Service that gives pods their names; the disruption budget is called so too."""
    return f"{pool}-brokers"


def labels(pool: str) -> dict[str, str]:
    """By which a pool's pods are found."""
    return {names.POOL_LABEL: pool, names.ROLE: names.BROKER}


def headless(pool: Pool) -> Document:
    """Whether a broker may be asked is the log service's to say, so names don't wait for probes."""
    name = pool.ref.name
    port = {
        "name": "clients",
        "port": names.CLIENT_PORT,
        "protocol": "TCP",
        "targetPort": names.CLIENT_PORT,
    }
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata(pool.object, subdomain(name), labels(name)),
        "spec": {
            "clusterIP": "None",
            "publishNotReadyAddresses": True,
            "selector": labels(name),
            "ports": [port],
        },
    }


def budget(pool: Pool, desired: int) -> Document:
    """For when nobody answers evictions: one at a time. It counts from below, because the number
    of pods that are meant isn't in `spec.replicas` where the load decides.
    """
    name = pool.ref.name
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": metadata(pool.object, subdomain(name), labels(name)),
        "spec": {
            "minAvailable": max(1, desired - 1),
            "selector": {"matchLabels": labels(name)},
            "unhealthyPodEvictionPolicy": "AlwaysAllow",
        },
    }


def pod(pool: Pool, name: str) -> Document:
    spec = pool.spec
    meta = dict(
        metadata(
            pool.object,
            name,
            {**spec.pod_labels, **labels(pool.ref.name), names.TEMPLATE: template(spec)},
        )
    )
    if spec.pod_annotations:
        meta["annotations"] = dict(spec.pod_annotations)
    body: dict[str, Any] = {
        "hostname": name,
        "subdomain": subdomain(pool.ref.name),
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": spec.drain_seconds + GRACE_S,
        "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [_container(pool)],
        "volumes": [volume for volume, _ in _volumes(spec)],
        **_placement(pool),
    }
    if spec.service_account_name:
        body["serviceAccountName"] = spec.service_account_name
    if spec.image_pull_secrets:
        body["imagePullSecrets"] = [{"name": each} for each in spec.image_pull_secrets]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": body}


def _declared(shape: msgspec.Struct) -> dict[str, Any]:
    return {
        field.name: _declared(value) if isinstance(value, msgspec.Struct) else value
        for field in msgspec.structs.fields(shape)
        if (value := getattr(shape, field.name)) != _default(field)
    }


def _default(field: msgspec.structs.FieldInfo) -> object:
    made = field.default_factory
    return field.default if made is msgspec.NODEFAULT else made()


def _container(pool: Pool) -> Document:
    spec = pool.spec
    sources: list[Document] = [{"secretRef": {"name": each}} for each in spec.config.secrets]
    if spec.config.config_map:
        sources.insert(0, {"configMapRef": {"name": spec.config.config_map}})
    return {
        "name": "broker",
        "image": spec.image,
        "imagePullPolicy": spec.image_pull_policy,
        "command": ["anabranch", "broker"],
        "env": _environment(pool),
        "envFrom": sources,
        "ports": [
            {"name": "clients", "containerPort": names.CLIENT_PORT},
            {"name": "probes", "containerPort": names.PROBE_PORT},
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
        "volumeMounts": [mount for _, mount in _volumes(spec)],
    }


def _environment(pool: Pool) -> list[Document]:
    """A broker is called after its pod and the pod's UID: a life is never taken for another."""
    spec, ref = pool.spec, pool.ref
    host = f"$(POD_NAME).{subdomain(ref.name)}.{ref.namespace}.svc"
    settings = {
        "NAME": "$(POD_NAME).$(POD_UID)",
        "ADVERTISE": f"{host}:{names.CLIENT_PORT}",
        "DRAIN_MS": str(spec.drain_seconds * 1_000),
    }
    if spec.tls_secret:
        settings |= {"TLS_CERT": f"{TLS_DIR}/tls.crt", "TLS_KEY": f"{TLS_DIR}/tls.key"}
    if spec.peer_tls_secret:
        for part, file in (("CERT", "tls.crt"), ("KEY", "tls.key"), ("CA", "ca.crt")):
            settings[f"PEER_TLS_{part}"] = f"{PEER_DIR}/{file}"
    size = None if spec.disk_cache is None else whole(spec.disk_cache.size)
    if size is not None:
        settings["DISK_CACHE"] = CACHE_DIR
        settings["DISK_CACHE_BYTES"] = str(max(1, int(size * _CACHE_PART)))
    fields = {"POD_NAME": "metadata.name", "POD_UID": "metadata.uid"}
    return [
        *(
            {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}
            for name, path in fields.items()
        ),
        *({"name": f"ANABRANCH_{name}", "value": value} for name, value in settings.items()),
    ]


def _probe(path: str, **times: int) -> Document:
    return {"httpGet": {"path": path, "port": "probes"}, "timeoutSeconds": 5, **times}


def _volumes(spec: PoolSpec) -> list[tuple[Document, Document]]:
    """Each with its mount. Nothing else of a pod can be written to."""
    found: list[tuple[Document, Document]] = [
        (
            {"name": "tmp", "emptyDir": {"sizeLimit": "256Mi"}},
            {"name": "tmp", "mountPath": "/tmp"},  # noqa: S108 - of the pod alone
        )
    ]
    if spec.disk_cache is not None:
        volume = {"name": "cache", "emptyDir": {"sizeLimit": spec.disk_cache.size}}
        found.append((volume, {"name": "cache", "mountPath": CACHE_DIR}))
    for name, secret, path in (
        ("tls", spec.tls_secret, TLS_DIR),
        ("peer", spec.peer_tls_secret, PEER_DIR),
    ):
        if secret:
            volume = {"name": name, "secret": {"secretName": secret}}
            found.append((volume, {"name": name, "mountPath": path, "readOnly": True}))
    if spec.service_account_name:
        found.append((_account(), {"name": "api", "mountPath": ACCOUNT_DIR, "readOnly": True}))
    return found


def _account() -> Document:
    """What a broker shows to the API server when it asks about a client's token."""
    token = {"serviceAccountToken": {"path": "token", "expirationSeconds": _TOKEN_S}}
    authority = {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}
    field = {"path": "namespace", "fieldRef": {"fieldPath": "metadata.namespace"}}
    sources = [token, {"configMap": authority}, {"downwardAPI": {"items": [field]}}]
    return {"name": "api", "projected": {"sources": sources}}


def _placement(pool: Pool) -> dict[str, Any]:
    spec = pool.spec
    selector = {"matchLabels": labels(pool.ref.name)}
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
