"""What is wrong with an installation, as far as the collection tells: in words, and what to do.

Pure: the same collection and moment give the same findings.
"""

import re
from collections.abc import Iterator, Mapping
from datetime import datetime

import msgspec

from anabranch.apps.doctor.collection import Collected, Document, part

SOON_S = 14 * 24 * 3_600
"""A certificate that ends sooner should have been renewed long ago."""
BEHIND_S = 60.0
"""How long a watch may be behind what is known to be there."""

_KINDS = {
    "brokerpools": "broker pool",
    "logs": "log",
    "forks": "fork",
    "sequencersets": "sequencer set",
    "shardgroups": "shard group",
}
_GOOD = ("Ready", "ServiceReachable")
_BAD = ("Degraded", "PoolExhausted", "RolloutBlocked")
_OVER = ("Promoted", "Squashed", "Expired")
"""Phases in which nobody waits for a fork any more."""
_PULL = "the node can't fetch its image: load it there, or name a registry in images"
_WAITING = {
    "ErrImagePull": _PULL,
    "ImagePullBackOff": _PULL,
    "InvalidImageName": "its image's name is wrong: look at images in the chart's values",
    "CrashLoopBackOff": "it ends again and again: its last lines say why",
    "CreateContainerConfigError": "a Secret or ConfigMap that it is told isn't there",
    "ContainerCreating": "a volume isn't there yet: its events say which",
}
_SAMPLE = re.compile(r"^(\w+)(?:\{(.*)\})? (\S+)$")
_LABEL = re.compile(r'(\w+)="([^"]*)"')


class Finding(msgspec.Struct, frozen=True, order=True):
    about: str
    says: str


def findings(found: Collected, now_s: float) -> list[Finding]:
    """In the order in which one should look: what others depend on first."""
    return [
        *_definitions(found),
        *_nothing(found),
        *_pods(found),
        *_leader(found, now_s),
        *_counters(found, now_s),
        *_conditions(found),
        *_unread(found),
    ]


def _definitions(found: Collected) -> Iterator[Finding]:
    known = {each["name"] for each in found.versions.get("definitions", ())}
    for plural in _KINDS:
        if "definitions" in found.versions and f"{plural}.anabranch.dev" not in known:
            yield Finding("definitions", f"{plural} isn't known: install the chart anabranch-crds")


def _nothing(found: Collected) -> Iterator[Finding]:
    if "pods" in found.objects and not any(map(part, found.of("pods"))):
        where = f"the namespace {found.namespace}"
        yield Finding(where, "no pod of Anabranch is there: is this the namespace of the release?")


def _pods(found: Collected) -> Iterator[Finding]:
    for pod in found.of("pods"):
        about = f"pod {pod['metadata']['name']}"
        if not part(pod) or pod["metadata"].get("deletionTimestamp"):
            continue
        status = pod.get("status", {})
        for each in status.get("conditions", ()):
            if each["type"] == "PodScheduled" and each["status"] == "False":
                yield Finding(about, f"no node takes it: {each.get('message', '')}")
        for container in status.get("containerStatuses", ()):
            yield from _container(found, about, container)


def _container(found: Collected, about: str, status: Document) -> Iterator[Finding]:
    waiting = status.get("state", {}).get("waiting", {})
    reason = waiting.get("reason", "")
    if reason:
        says = _WAITING.get(reason, "its container doesn't begin")
        told = waiting.get("message") or _mount(found, about.removeprefix("pod "))
        yield Finding(about, f"{reason}: {says}" + f" ({told})" * bool(told))
    ended = status.get("lastState", {}).get("terminated", {})
    if ended.get("reason") == "OOMKilled":
        yield Finding(about, "it took more memory than its limit allows, and was ended: raise it")
    elif ended and not reason and not status.get("ready"):
        yield Finding(about, f"it ended with {ended.get('exitCode')} and isn't ready again")
    elif not status.get("ready") and not reason and "running" in status.get("state", {}):
        yield Finding(about, "it runs and isn't ready: its readyz page says why")


def _mount(found: Collected, pod: str) -> str:
    told = [
        each.get("message", "")
        for each in found.of("events")
        if each.get("reason") == "FailedMount" and each["involvedObject"].get("name") == pod
    ]
    return told[-1] if told else ""


def _leader(found: Collected, now_s: float) -> Iterator[Finding]:
    for lease in found.of("leases"):
        name, spec = lease["metadata"]["name"], lease["spec"]
        if not name.endswith("-operator"):
            continue
        if not spec.get("holderIdentity"):
            yield Finding(f"lease {name}", "no operator acts: are its pods ready?")
        elif now_s - _moment(spec["renewTime"]) > 3 * spec["leaseDurationSeconds"]:
            yield Finding(f"lease {name}", f"{spec['holderIdentity']} doesn't renew it any more")


def _counters(found: Collected, now_s: float) -> Iterator[Finding]:
    """What operators and members count of themselves."""
    for file, page in sorted(found.pages.items()):
        if not file.endswith(".metrics"):
            continue
        about = f"pod {file.removesuffix('.metrics')}"
        counted = list(_samples(page))
        leads = any(name == "anabranch_operator_leader" and value for name, _, value in counted)
        for name, labels, value in counted:
            says = _counted(name, labels, value, now_s, leads=leads)
            if says:
                yield Finding(about, says)


def _counted(
    name: str, labels: Mapping[str, str], value: float, now_s: float, *, leads: bool
) -> str:
    match name.removeprefix("anabranch_operator_"):
        case "anabranch_etcd_full" if value:
            return "etcd is full, so appends and changes are refused: raise its quota or make room"
        case "api_requests_total" if labels.get("code") == "403" and value:
            what = f"{labels.get('verb')} {labels.get('kind')}"
            return f"the API server forbids it to {what}: a Role or its binding is missing"
        case "canary_age_seconds" if value > BEHIND_S:
            return f"its watches are {value:.0f} s behind: the API server or the way to it is slow"
        case "service_reachable" if leads and not value:
            return "the log service doesn't answer it: are brokers and members ready?"
        case "malformed" if value:
            return f"{value:.0f} resources can't be understood: the CRDs are of another version"
        case "certificate_expiry_seconds" if value - now_s < SOON_S:
            days = (value - now_s) / (24 * 3_600)
            return f"the certificate {labels.get('name')} ends in {days:.0f} days"
        case _:
            return ""


def _conditions(found: Collected) -> Iterator[Finding]:
    for kind, what in _KINDS.items():
        for each in found.of(kind):
            status = each.get("status", {})
            about = f"{what} {each['metadata']['name']}"
            if not status:
                yield Finding(about, "no operator has looked at it")
            for said in status.get("conditions", ()):
                if _is_bad(said, status.get("phase", "")):
                    told = f"{said['type']} is {said['status']}, {said['reason']}"
                    yield Finding(about, f"{told}: {said['message']}".removesuffix(": "))


def _is_bad(said: Document, phase: str) -> bool:
    kind, status = said["type"], said["status"]
    if kind == "Ready" and phase in _OVER:
        return False
    return status != "True" if kind in _GOOD else kind in _BAD and status == "True"


def _unread(found: Collected) -> Iterator[Finding]:
    """Only what one may not see: the rest is in the archive, and mostly follows from the above."""
    for path, why in sorted(found.unread.items()):
        if why.startswith("403"):
            yield Finding("the doctor", f"may not read {path}: {why}")


def _samples(page: str) -> Iterator[tuple[str, dict[str, str], float]]:
    for line in page.splitlines():
        match = _SAMPLE.match(line)
        if match is not None:
            yield match[1], dict(_LABEL.findall(match[2] or "")), float(match[3])


def _moment(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def as_words(found: list[Finding]) -> Iterator[str]:
    for each in found:
        yield f"{each.about}: {each.says}"
