"""Which Jobs a gate may run: what a template may ask for, and what its pods get in any case.

The operator makes the Job for the author of a Fork. The rule lists the fields that are allowed: one
that a later Kubernetes adds is refused until somebody has looked at it (decision 41).
"""

from collections.abc import Collection, Iterator
from enum import StrEnum
from typing import Any, cast

import msgspec

from anabranch_operator.api import names
from anabranch_operator.plan.engine.objects import Document


class PodSecurity(StrEnum):
    """The Pod Security Standard that a gate's pods must keep."""

    RESTRICTED = "restricted"
    BASELINE = "baseline"


class GateSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the Jobs of promotion gates may do."""

    enabled: bool = False
    """Run the Jobs of promotion gates. Turn this on only where an admission policy checks the
    authors of Forks: the chart's does.
    """

    service_account: str = ""
    """The service account of a gate's pods whose template names none; empty: the release's name
    with -gate.
    """

    service_accounts: tuple[str, ...] = ()
    """More service accounts that a template may name."""

    api_accounts: tuple[str, ...] = ()
    """Service accounts whose token for the API server a template may mount, where its pods run as
    them. Such a gate can do there what the account may: a driver of Spark makes executors.
    """

    secrets: tuple[str, ...] = ()
    """Secrets that a template may mount, read into variables, or pull images with."""

    volumes: tuple[str, ...] = ("configMap", "downwardAPI", "emptyDir")
    """Kinds of volumes that a template may have besides Secrets and projected volumes, whose
    sources are checked one by one.
    """

    priority_classes: tuple[str, ...] = ()
    """Priority classes that a template may name."""

    pod_security: PodSecurity = PodSecurity.RESTRICTED
    """The Pod Security Standard that a gate's pods must keep: `restricted` or `baseline`."""

    logs: bool = False
    """Copy the last lines of a failed gate's log into the Fork's status and its Event, redacted.
    Whoever may read Forks can then read them.
    """

    def account(self, release: str) -> str:
        """The service account of pods whose template names none."""
        return self.service_account or f"{release}-{names.GATE}"


_JOB = frozenset(
    {
        "activeDeadlineSeconds",
        "backoffLimit",
        "backoffLimitPerIndex",
        "completionMode",
        "completions",
        "maxFailedIndexes",
        "parallelism",
        "podFailurePolicy",
        "podReplacementPolicy",
        "successPolicy",
        "template",
        "ttlSecondsAfterFinished",
    }
)
"""Without `selector` and `manualSelector`, which would make other pods the Job's."""

_POD = frozenset(
    {
        "activeDeadlineSeconds",
        "affinity",
        "containers",
        "dnsConfig",
        "dnsPolicy",
        "enableServiceLinks",
        "imagePullSecrets",
        "initContainers",
        "nodeSelector",
        "priorityClassName",
        "resources",
        "restartPolicy",
        "securityContext",
        "serviceAccountName",
        "shareProcessNamespace",
        "terminationGracePeriodSeconds",
        "tolerations",
        "topologySpreadConstraints",
        "volumes",
    }
)

_CONTAINER = frozenset(
    {
        "args",
        "command",
        "env",
        "envFrom",
        "image",
        "imagePullPolicy",
        "name",
        "ports",
        "resources",
        "restartPolicy",
        "securityContext",
        "stdin",
        "stdinOnce",
        "terminationMessagePath",
        "terminationMessagePolicy",
        "tty",
        "volumeMounts",
        "workingDir",
    }
)
"""Without probes and hooks, by which a kubelet sends requests to any host."""

_PORT = frozenset({"containerPort", "name", "protocol"})
_RESOURCES = frozenset({"limits", "requests"})
_SHARED_SECURITY = frozenset(
    {"appArmorProfile", "runAsGroup", "runAsNonRoot", "runAsUser", "seccompProfile"}
)
_POD_SECURITY = _SHARED_SECURITY | {
    "fsGroup",
    "fsGroupChangePolicy",
    "supplementalGroups",
    "supplementalGroupsPolicy",
}
_CONTAINER_SECURITY = _SHARED_SECURITY | {
    "allowPrivilegeEscalation",
    "capabilities",
    "readOnlyRootFilesystem",
}
_PROFILES = {
    # A profile on a node may allow anything: nobody here knows what it says.
    PodSecurity.RESTRICTED: ("RuntimeDefault",),
    PodSecurity.BASELINE: ("RuntimeDefault", "Localhost"),
}
_CAPABILITIES = {
    PodSecurity.RESTRICTED: ("NET_BIND_SERVICE",),
    PodSecurity.BASELINE: (
        "AUDIT_WRITE",
        "CHOWN",
        "DAC_OVERRIDE",
        "FOWNER",
        "FSETID",
        "KILL",
        "MKNOD",
        "NET_BIND_SERVICE",
        "SETFCAP",
        "SETGID",
        "SETPCAP",
        "SETUID",
        "SYS_CHROOT",
    ),
}
_OURS = f"{names.GROUP}/"
_RELEASE = "app.kubernetes.io/instance"
"""Services of the release choose their pods by it."""
_METADATA = frozenset({"annotations", "generateName", "labels", "name", "namespace"})
"""Labels and annotations are taken over, names are ignored."""
_LABELS = frozenset(
    f"app.kubernetes.io/{each}" for each in ("component", "name", "part-of", "version")
)
_ANNOTATIONS = frozenset({"kubectl.kubernetes.io/default-container", "kubernetes.io/description"})
"""By others, admission controllers and meshes add containers, credentials or rights to a pod."""
_WITHOUT_SIDECARS = (("linkerd.io/inject", "disabled"), ("sidecar.istio.io/inject", "false"))
"""A Job whose sidecar goes on running doesn't end."""
_NODE_ROLES = "node-role.kubernetes.io/"
_POD_LISTS = ("imagePullSecrets", "tolerations", "volumes")
_CONTAINER_LISTS = ("env", "envFrom", "ports", "volumeMounts")


def objections(template: Document, settings: GateSettings, release: str) -> tuple[str, ...]:
    """Each thing that the template asks for and isn't allowed, with the field that asks for it."""
    return tuple(_Review(settings, settings.account(release)).job(template))


def restrict(spec: Document, settings: GateSettings, release: str) -> Document:
    """A pod's spec without objections, with what it doesn't say itself set to be safe."""
    account = spec.get("serviceAccountName") or settings.account(release)
    found: dict[str, Any] = {
        "enableServiceLinks": False,
        **without_nulls(spec),
        "serviceAccountName": account,
        "automountServiceAccountToken": False,
    }
    if settings.pod_security is PodSecurity.BASELINE:
        return found
    security = _with_profile(_table(spec.get("securityContext")))
    security.setdefault("seccompProfile", {"type": "RuntimeDefault"})
    found["securityContext"] = {**security, "runAsNonRoot": True}
    for key in ("initContainers", "containers"):
        if key in found:
            found[key] = [_restricted(each) for each in _tables(found[key])]
    return found


def without_nulls(given: Any) -> dict[str, Any]:
    """For Kubernetes a null is a field that was left out; here it would undo a default."""
    return {key: value for key, value in _table(given).items() if value is not None}


def _restricted(container: Document) -> Document:
    given = _with_profile(_table(container.get("securityContext")))
    capabilities = {**without_nulls(given.get("capabilities")), "drop": ["ALL"]}
    security = {**given, "allowPrivilegeEscalation": False, "capabilities": capabilities}
    return {**container, "securityContext": security}


def _with_profile(security: Document) -> dict[str, Any]:
    """Without a seccomp profile that has no type, which is none."""
    found = without_nulls(security)
    if not _table(found.get("seccompProfile")).get("type"):
        found.pop("seccompProfile", None)
    return found


class _Review:
    """Walks through a template; every method yields objections.

    What the template holds is looked for in tuples: it may be of any type, also one without a hash.
    """

    def __init__(self, settings: GateSettings, account: str) -> None:
        self._settings = settings
        self._restricted = settings.pod_security is PodSecurity.RESTRICTED
        self._accounts = (account, *settings.service_accounts)
        self._account = account

    def job(self, template: Document) -> Iterator[str]:
        yield from self._metadata("metadata", template.get("metadata"))
        spec = _table(template.get("spec"))
        yield from self._only("spec", spec, _JOB)
        pods = _table(spec.get("template"))
        yield from self._metadata("spec.template.metadata", pods.get("metadata"))
        given = pods.get("spec")
        if not isinstance(given, dict):
            yield f"spec.template.spec has fields, and isn't {_kind(given)}"
        yield from self._pod("spec.template.spec", _table(given))

    def _metadata(self, where: str, given: Any) -> Iterator[str]:
        if given is not None and not isinstance(given, dict):
            yield f"{where} has fields, and isn't {_kind(given)}"
        table = _table(given)
        yield from self._only(where, table, _METADATA)
        for key in ("labels", "annotations"):
            said = table.get(key)
            if said is not None and not isinstance(said, dict):
                yield f"{where}.{key} has fields, and isn't {_kind(said)}"
        for name, value in _table(table.get("labels")).items():
            if name.startswith(_OURS) or name == _RELEASE:
                yield f"{where}.labels: {name} is the operator's"
            elif "/" in name and name not in _LABELS and (name, value) not in _WITHOUT_SIDECARS:
                yield f"{where}.labels: {name} isn't allowed"
        for name, value in _table(table.get("annotations")).items():
            if name not in _ANNOTATIONS and (name, value) not in _WITHOUT_SIDECARS:
                yield f"{where}.annotations: {name} isn't allowed"

    def _pod(self, where: str, spec: Document) -> Iterator[str]:
        yield from self._only(where, spec, _POD)
        account = spec.get("serviceAccountName") or ""
        if account and account not in self._accounts:
            yield f"{where}.serviceAccountName: {account} isn't in gates.service_accounts"
        priority = spec.get("priorityClassName") or ""
        if priority and priority not in self._settings.priority_classes:
            yield f"{where}.priorityClassName: {priority} isn't in gates.priority_classes"
        for secret in _tables(spec.get("imagePullSecrets")):
            yield from self._secret(f"{where}.imagePullSecrets", secret.get("name"))
        security = _table(spec.get("securityContext"))
        yield from self._security(f"{where}.securityContext", security, _POD_SECURITY)
        bearer = account or self._account
        for volume in _tables(spec.get("volumes")):
            yield from self._volume(f"{where}.volumes[{volume.get('name')}]", volume, bearer)
        yield from self._nodes(where, spec)
        yield from self._lists(where, without_nulls(spec), _POD_LISTS)
        yield from self._lists(where, spec, ("initContainers", "containers"))
        for key in ("initContainers", "containers"):
            for container in _tables(spec.get(key)):
                yield from self._container(f"{where}.{key}[{container.get('name')}]", container)

    def _lists(self, where: str, given: Document, keys: Collection[str]) -> Iterator[str]:
        """What the operator adds to, or looks through, has to be what it seems."""
        for key in keys:
            value = given.get(key)
            if key in given and not isinstance(value, list):
                yield f"{where}.{key} is a list, and not {_kind(value)}"
            for each in _list(value):
                if not isinstance(each, dict):
                    yield f"{where}.{key}: an entry has fields, and isn't {_kind(each)}"

    def _nodes(self, where: str, spec: Document) -> Iterator[str]:
        """Nodes with a role, such as the control plane, run no gates."""
        for toleration in _tables(spec.get("tolerations")):
            key = toleration.get("key")
            if not key:
                yield f"{where}.tolerations: one without a key tolerates every taint"
            elif str(key).startswith(_NODE_ROLES):
                yield f"{where}.tolerations: {key} isn't allowed"
        for key in _table(spec.get("nodeSelector")):
            if key.startswith(_NODE_ROLES):
                yield f"{where}.nodeSelector: {key} isn't allowed"

    def _container(self, where: str, container: Document) -> Iterator[str]:
        yield from self._only(where, container, _CONTAINER)
        yield from self._lists(where, without_nulls(container), _CONTAINER_LISTS)
        for variable in _tables(container.get("env")):
            if not isinstance(variable.get("name"), str):
                yield f"{where}.env: a variable has no name"
            source = _table(variable.get("valueFrom"))
            yield from self._source(f"{where}.env[{variable.get('name')}]", source, "KeyRef")
        for each in _tables(container.get("envFrom")):
            named = {key: value for key, value in each.items() if key != "prefix"}
            yield from self._source(f"{where}.envFrom", named, "Ref")
        for port in _tables(container.get("ports")):
            yield from self._only(f"{where}.ports", port, _PORT)
        resources = _table(container.get("resources"))
        yield from self._only(f"{where}.resources", resources, _RESOURCES)
        security = _table(container.get("securityContext"))
        yield from self._security(f"{where}.securityContext", security, _CONTAINER_SECURITY)
        yield from self._container_security(f"{where}.securityContext", security)

    def _source(self, where: str, source: Document, suffix: str) -> Iterator[str]:
        """Of a variable, or of all variables of a container."""
        allowed = {"fieldRef", "resourceFieldRef", f"configMap{suffix}"}
        for key, value in source.items():
            if key == f"secret{suffix}":
                yield from self._secret(where, _table(value).get("name"))
            elif key not in allowed and not _is_unset(value):
                yield f"{where}.{key} isn't allowed"

    def _volume(self, where: str, volume: Document, account: Any) -> Iterator[str]:
        for kind, value in volume.items():
            if kind == "name":
                continue
            if kind == "secret":
                yield from self._secret(where, _table(value).get("secretName"))
            elif kind == "projected":
                for source in _tables(_table(value).get("sources")):
                    yield from self._projection(f"{where}.projected", source, account)
            elif kind not in self._settings.volumes and value is not None:
                yield f"{where}: a volume of kind {kind} isn't in gates.volumes"

    def _projection(self, where: str, source: Document, account: Any) -> Iterator[str]:
        for key, value in source.items():
            if key == "secret":
                yield from self._secret(where, _table(value).get("name"))
            elif key == "serviceAccountToken" and value is not None:
                yield from self._token(f"{where}.{key}", _table(value), account)
            elif key not in {"configMap", "downwardAPI"} and value is not None:
                yield f"{where}.{key} isn't allowed"

    def _token(self, where: str, token: Document, account: Any) -> Iterator[str]:
        """Without an audience it is for the API server; others would let the account in
        elsewhere.
        """
        if account not in self._settings.api_accounts:
            yield f"{where}: {account} isn't in gates.api_accounts"
        if token.get("audience"):
            yield f"{where}.audience isn't allowed"

    def _secret(self, where: str, name: Any) -> Iterator[str]:
        if name not in self._settings.secrets:
            yield f"{where}: the Secret {name} isn't in gates.secrets"

    def _security(self, where: str, given: Document, allowed: frozenset[str]) -> Iterator[str]:
        yield from self._only(where, given, allowed)
        for key in ("seccompProfile", "appArmorProfile"):
            profile = _table(given.get(key)).get("type")
            if profile is not None and profile not in _PROFILES[self._settings.pod_security]:
                yield f"{where}.{key}: {profile} isn't allowed"
        if self._restricted and given.get("runAsNonRoot") is False:
            yield f"{where}.runAsNonRoot is false, which gates.pod_security doesn't allow"
        if self._restricted and given.get("runAsUser") == 0:
            yield f"{where}.runAsUser is 0, which gates.pod_security doesn't allow"

    def _container_security(self, where: str, given: Document) -> Iterator[str]:
        if self._restricted and given.get("allowPrivilegeEscalation"):
            yield f"{where}.allowPrivilegeEscalation, which gates.pod_security doesn't allow"
        added = _table(given.get("capabilities")).get("add")
        allowed = _CAPABILITIES[self._settings.pod_security]
        for each in _list(added):
            if each not in allowed:
                yield f"{where}.capabilities: {each}, which gates.pod_security doesn't allow"

    def _only(self, where: str, given: Document, allowed: Collection[str]) -> Iterator[str]:
        for key, value in given.items():
            if key not in allowed and not _is_unset(value):
                yield f"{where}.{key} isn't allowed"


def _is_unset(value: Any) -> bool:
    """Says no more than leaving the field out."""
    return value is None or value is False or value in ("", {}, [])


def _kind(value: Any) -> str:
    """What somebody wrote instead of what belongs there."""
    if value is None:
        return "null"
    return "a list" if isinstance(value, list) else "a single value"


def _list(value: Any) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []


def _table(value: Any) -> Document:
    """What isn't a table is refused by the API server, which checks the Job's types."""
    return cast("Document", value) if isinstance(value, dict) else {}


def _tables(value: Any) -> list[Document]:
    return [_table(each) for each in _list(value)]
