"""What a broker's pod is made of, and what stands around a pool's pods."""

from anabranch_operator.api import names
from anabranch_operator.api.pool import OF_THE_POOL, PoolSpec
from anabranch_operator.plan.engine.objects import Document
from anabranch_operator.plan.engine.world import Pool
from anabranch_operator.plan.manifests import pod_parts
from anabranch_operator.plan.manifests.pod_parts import TLS_DIR, Mounted
from anabranch_operator.plan.manifests.quantities import whole

PEER_DIR = f"{names.RUN_DIR}/peer"
CACHE_DIR = "/var/cache/anabranch"

_CACHE_PART = 0.9
"""Of its volume: a pod whose volume overflows is put off its node."""


def template(spec: PoolSpec) -> str:
    return pod_parts.template(spec, OF_THE_POOL)


def subdomain(pool: str) -> str:
    """The headless Service that gives pods their names; the disruption budget is called so too."""
    return f"{pool}-brokers"


def labels(pool: str) -> dict[str, str]:
    """By which a pool's pods are found."""
    return {names.POOL_LABEL: pool, names.ROLE: names.BROKER}


def headless(pool: Pool) -> Document:
    name = pool.ref.name
    return pod_parts.headless(pool.object, subdomain(name), labels(name), names.CLIENT_PORT)


def budget(pool: Pool, desired: int) -> Document:
    """One at a time."""
    name = pool.ref.name
    return pod_parts.budget(pool.object, subdomain(name), labels(name), max(1, desired - 1))


def pod(pool: Pool, name: str) -> Document:
    """A broker is called after its pod and the pod's UID: a life is never taken for another."""
    fields = {"POD_NAME": "metadata.name", "POD_UID": "metadata.uid"}
    found = labels(pool.ref.name)
    body = pod_parts.Body(
        owner=pool.object,
        name=name,
        subdomain=subdomain(pool.ref.name),
        role=names.BROKER,
        labels=found,
        apart=found,
        template=template(pool.spec),
        ports=(names.CLIENT_PORT, names.PROBE_PORT),
        settings=_settings(pool),
        variables=[
            {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}
            for name, path in fields.items()
        ],
        volumes=_volumes(pool.spec),
    )
    return pod_parts.pod(pool.spec, body)


def _settings(pool: Pool) -> dict[str, str]:
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
    return settings


def _volumes(spec: PoolSpec) -> list[Mounted]:
    found: list[Mounted] = []
    if spec.disk_cache is not None:
        volume = {"name": "cache", "emptyDir": {"sizeLimit": spec.disk_cache.size}}
        found.append((volume, {"name": "cache", "mountPath": CACHE_DIR}))
    if spec.peer_tls_secret:
        found.append(pod_parts.secret("peer", spec.peer_tls_secret, PEER_DIR))
    return found
