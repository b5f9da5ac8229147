"""The Job of a promotion gate, as the operator makes it of the author's template."""

from hashlib import blake2b
from typing import Any

from anabranch_operator.api import names
from anabranch_operator.api.anabranch_names import Description
from anabranch_operator.api.fork import Gate, GateStatus
from anabranch_operator.plan.engine.objects import Document
from anabranch_operator.plan.engine.world import Fork, World
from anabranch_operator.plan.log.job_templates import restrict, without_nulls
from anabranch_operator.plan.log.services import entrance, metadata

_UID_PART = 8
_VOLUME = "anabranch"
_KEPT_S = 3_600
"""How long a Job after the first one stays when it has ended. Without that a fork that always moves
would collect them.
"""


def job_name(fork: Fork, attempt: int = 1) -> str:
    """Each attempt to judge the fork has a Job of its own. All names are equally long, because the
    longest Fork's leaves room for no more.
    """
    part = fork.object.uid[:_UID_PART]
    if attempt > 1:
        named = f"{fork.object.uid} {attempt}".encode()
        part = blake2b(named, digest_size=_UID_PART // 2).hexdigest()
    return f"gate-{fork.ref.name}-{part}"


def gate_job(
    world: World, fork: Fork, gate: Gate, log: Description, judged: GateStatus
) -> Document:
    """The template with the fork's address, and how many own records it has, in every container's
    environment.
    """
    template = gate.job_template
    said = without_nulls(template.get("metadata"))
    labels: dict[str, Any] = {
        **(said.get("labels") or {}),
        names.ROLE: names.GATE,
        names.FORK_LABEL: fork.ref.name,
    }
    kept = {"ttlSecondsAfterFinished": _KEPT_S} if judged.attempt > 1 else {}
    spec: dict[str, Any] = {"backoffLimit": 0, **kept, **without_nulls(template["spec"])}
    pod: dict[str, Any] = dict(spec["template"])
    pod_said = without_nulls(pod.get("metadata"))
    # Only these: a finalizer or an owner in it would outlive the Job.
    pod["metadata"] = {"labels": {**(pod_said.get("labels") or {}), **labels}}
    if pod_said.get("annotations"):
        pod["metadata"]["annotations"] = pod_said["annotations"]
    pod["spec"] = _pod_spec(world, fork, log, pod["spec"], judged)
    spec["template"] = pod
    meta = dict(metadata(fork.object, judged.job, labels))
    if said.get("annotations"):
        meta["annotations"] = said["annotations"]
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": meta, "spec": spec}


def _pod_spec(
    world: World, fork: Fork, log: Description, spec: Document, judged: GateStatus
) -> Document:
    surroundings = world.surroundings
    variables = {
        "ANABRANCH_URL": _url(world),
        "ANABRANCH_LOG": log.name,
        "ANABRANCH_FORK": fork.ref.name,
        "ANABRANCH_PARENT": log.parent or "",
        "ANABRANCH_FORK_POINT": str(log.fork_point),
        "ANABRANCH_OWN_RECORDS": str(judged.own_records),
    }
    env: list[Document] = [{"name": name, "value": value} for name, value in variables.items()]
    mount = {"name": _VOLUME, "mountPath": names.RUN_DIR, "readOnly": True}
    sources: list[Document] = [
        {
            "serviceAccountToken": {
                "audience": names.AUDIENCE,
                "path": "token",
                "expirationSeconds": 3_600,
            }
        }
    ]
    if surroundings.tls:
        items = [{"key": "ca.crt", "path": "ca.crt"}]
        sources.append({"configMap": {"name": surroundings.certificates.bundle, "items": items}})
    restricted = restrict(spec, surroundings.gates, surroundings.release)
    filled = {"restartPolicy": "Never", **restricted}
    for key in ("initContainers", "containers"):
        if key in restricted:
            filled[key] = [_container(each, env, mount) for each in restricted[key]]
    volume = {"name": _VOLUME, "projected": {"sources": sources}}
    filled["volumes"] = [*(spec.get("volumes") or ()), volume]
    return filled


def _container(container: Document, env: list[Document], mount: Document) -> Document:
    """What the template says itself goes before what we say."""
    said = {each["name"] for each in container.get("env") or ()}
    return {
        **container,
        "env": [*(each for each in env if each["name"] not in said), *(container.get("env") or ())],
        "volumeMounts": [*(container.get("volumeMounts") or ()), mount],
    }


def _url(world: World) -> str:
    """Not the fork's own Service: resolvers may have heard of another fork of this name, or of
    none, a moment ago, and a Job that reaches nobody fails.
    """
    surroundings = world.surroundings
    query = f"?token_file={names.RUN_DIR}/token"
    if surroundings.tls:
        query = f"?ca={names.RUN_DIR}/ca.crt&token_file={names.RUN_DIR}/token"
    return entrance(surroundings) + query
