"""What there is of an installation, read and stripped of what nobody should send around.

Secrets aren't asked for. Variables of pods and Jobs are kept only where they are ours and name no
secret, commands and their arguments only of our own pods. All that is kept is redacted by value.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol, cast
from urllib.parse import quote

import msgspec

from anabranch.apps.doctor.cluster import Refused
from anabranch.apps.doctor.redaction import HIDDEN, Redaction
from anabranch.core.errors import Unavailable

GROUP, VERSION = "anabranch.dev", "v1alpha1"
LINES = 200
LOG_BYTES_MAX = 1_048_576
"""Of each log: a line may be of any length."""

_DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_ANABRANCH = f"/apis/{GROUP}/{VERSION}"
_KINDS = {
    "logs": _ANABRANCH,
    "forks": _ANABRANCH,
    "brokerpools": _ANABRANCH,
    "sequencersets": _ANABRANCH,
    "shardgroups": _ANABRANCH,
    "deployments": "/apis/apps/v1",
    "statefulsets": "/apis/apps/v1",
    "pods": "/api/v1",
    "services": "/api/v1",
    "endpointslices": "/apis/discovery.k8s.io/v1",
    "persistentvolumeclaims": "/api/v1",
    "poddisruptionbudgets": "/apis/policy/v1",
    "jobs": "/apis/batch/v1",
    "leases": "/apis/coordination.k8s.io/v1",
    "events": "/api/v1",
}
_PROBES = {
    "operator": 8080,
    "broker": 7422,
    "metadata": 7431,
    "gateway": 7422,
    "sequencer": 7441,
    "shard": 7451,
}
"""Where each part tells how it fares."""
_BELFAST = ("sequencer", "shard")
_ROLE = f"{GROUP}/role"
_SECRETIVE = ("TOKEN", "SECRET", "PASSWORD", "KEY", "CREDENTIAL")
_DROPPED = ("managedFields", "annotations")
_COMMANDS = ("command", "args")

Document = dict[str, Any]


class Api(Protocol):
    def get(self, path: str) -> Any: ...

    def text(self, path: str) -> str: ...


class Collected(msgspec.Struct, kw_only=True):
    """All that was read; what couldn't be is in `unread`, with the reason."""

    namespace: str
    versions: Document = {}
    objects: dict[str, list[Document]] = {}
    """By kind, as in paths."""
    logs: dict[str, str] = {}
    """The last lines, by file."""
    pages: dict[str, str] = {}
    """Metrics and readiness, by file."""
    unread: dict[str, str] = {}

    def of(self, kind: str) -> list[Document]:
        return self.objects.get(kind, [])


def collect(api: Api, namespace: str, release: str) -> Collected:
    found = Collected(namespace=namespace, versions={}, objects={}, logs={}, pages={}, unread={})
    redaction = Redaction()
    # Who can't be reached at all is told so; whatever is missing later is noted.
    found.versions["kubernetes"] = api.get("/version")
    _try(found, _DEFINITIONS, lambda: _define(found, api))
    for kind, home in _KINDS.items():
        path = f"{home}/namespaces/{namespace}/{kind}"
        _try(found, path, lambda kind=kind, path=path: _list(found, api, kind, path, redaction))
    for pod in found.of("pods"):
        if _is_of(pod, release):
            _ask_pod(found, api, pod)
    _redact(found, redaction)
    return found


def part(pod: Document) -> str:
    labels = pod["metadata"].get("labels", {})
    return labels.get("app.kubernetes.io/component", "") or labels.get(_ROLE, "")


def _is_of(pod: Document, release: str) -> bool:
    """Sequencers and shards are of resources, which any release of the namespace may look after."""
    labels = pod["metadata"].get("labels", {})
    if labels.get(_ROLE) in _BELFAST:
        return True
    ours = labels.get("app.kubernetes.io/name") == "anabranch"
    return ours and release in ("", labels.get("app.kubernetes.io/instance"))


def _try(found: Collected, what: str, read: Callable[[], None]) -> None:
    try:
        read()
    except (Refused, Unavailable, ValueError) as error:
        found.unread[what] = str(error)


def _define(found: Collected, api: Api) -> None:
    found.versions["definitions"] = [
        {
            "name": each["metadata"]["name"],
            "labels": each["metadata"].get("labels", {}),
            "stored": each.get("status", {}).get("storedVersions", []),
        }
        for each in api.get(_DEFINITIONS)["items"]
        if each["spec"]["group"] == GROUP
    ]


def _list(found: Collected, api: Api, kind: str, path: str, redaction: Redaction) -> None:
    items = api.get(path)["items"]
    redaction.learn(items)
    found.objects[kind] = [stripped(each) for each in items]


def _redact(found: Collected, redaction: Redaction) -> None:
    """Only now, since a value that one object gives away may stand in another's log."""
    found.objects = {kind: redaction.cleaned(each) for kind, each in found.objects.items()}
    found.versions = redaction.cleaned(found.versions)
    for texts in (found.logs, found.pages, found.unread):
        texts.update({name: redaction.clean(text) for name, text in texts.items()})


def _ask_pod(found: Collected, api: Api, pod: Document) -> None:
    name, home = pod["metadata"]["name"], f"/api/v1/namespaces/{found.namespace}/pods"
    for status in pod.get("status", {}).get("containerStatuses", ()):
        container = quote(status["name"])
        path = (
            f"{home}/{name}/log?container={container}&tailLines={LINES}&limitBytes={LOG_BYTES_MAX}"
        )
        _keep(found, api, found.logs, f"{name}.log", path)
        if status.get("restartCount"):
            _keep(found, api, found.logs, f"{name}.previous.log", f"{path}&previous=true")
    port = _PROBES.get(part(pod))
    if port is None:
        return
    for page in ("readyz", "metrics"):
        path = f"{home}/{name}:{port}/proxy/{page}"
        _keep(found, api, found.pages, f"{name}.{page}", path)


def _keep(found: Collected, api: Api, where: dict[str, str], file: str, path: str) -> None:
    _try(found, path, lambda: where.__setitem__(file, api.text(path)))


def stripped(document: Document) -> Document:
    """The document without annotations, and without what environments and commands give away."""
    return _without_secrets(document, ours=_is_ours(document))


def _is_ours(document: Document) -> bool:
    labels = document["metadata"].get("labels", {})
    return labels.get("app.kubernetes.io/name") == "anabranch" or _ROLE in labels


def _without_secrets(value: Any, *, ours: bool) -> Any:
    if isinstance(value, dict):
        fields = cast("Document", value)
        return {
            key: _field(key, each, ours=ours) for key, each in fields.items() if key not in _DROPPED
        }
    if isinstance(value, list):
        return [_without_secrets(each, ours=ours) for each in cast("list[Any]", value)]
    return value


def _field(key: str, value: Any, *, ours: bool) -> Any:
    if key == "env":
        return list(_environment(value))
    if key in _COMMANDS and not ours:
        return [HIDDEN]
    return _without_secrets(value, ours=ours)


def _environment(variables: Iterable[Document]) -> Iterator[Document]:
    for each in variables:
        name: str = each["name"]
        shown = name.startswith("ANABRANCH_") and not any(word in name for word in _SECRETIVE)
        yield each if shown or "value" not in each else {**each, "value": HIDDEN}
